/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes the tables of a recording (`report RUN.vcs TABLE`) or of intervals (`watch TABLE`).
 * figures.h defines the tables. Some names select a page: several tables that answer one question.
 * --per and --than leave out the tables of a page that do not accept them.
 */
#ifndef TABLES_REPORT_TABLES_H
#define TABLES_REPORT_TABLES_H

#include <stdint.h>
#include <stdio.h>

#include "host-collector/analyze/chain/chain.h"
#include "host-collector/model/narrow.h"
#include "host-collector/tables/table.h"

/* Values of --per. */
#define REPORT_TABLE_PER "vcpu|pcpu|vector|task|process|cgroup"

struct report_table_request {
	const char *table;
	const char *per;    /* a word of REPORT_TABLE_PER, or NULL */
	uint64_t than_ns;   /* 0: no filter */
	uint64_t top;       /* maximum number of rows; 0: no limit */
	const char *format; /* "text", "json" or "csv" */
	bool alone;         /* only this table, not the others of its page */
	/* The rows and the time to show; NULL: all. Borrowed. With a vCPU and without `per`, tables
	 * are split by vCPU. Tables that do not have the vCPU or the task of their rows are left
	 * out. */
	const struct narrow *narrow;
	/* The caller's chains (per vCPU), or NULL. Tables of chains then show these. Borrowed;
	 * the caller finishes them. */
	struct chains *chains;
	/* What the caller accepts besides tables, ended by NULL, for the text of an error; NULL:
	 * nothing. Borrowed. */
	const char *const *others;
};

/* Checks whether the request can be shown. Returns 0, or -EINVAL with one line in `why` that
 * names the possible values. */
int report_table_check(const struct report_table_request *request, char *why, size_t why_bytes);

struct report_table;

/* Subscribes to the model, which must not have received events yet. `request` has passed
 * report_table_check() and is borrowed. Returns NULL on ENOMEM. */
struct report_table *report_table_new(struct model *m, const struct report_table_request *request);
void report_table_free(struct report_table *t);
/* Counts what waited for further events; call it after model_finish(). */
void report_table_finish(struct report_table *t);
/* Returns table number `index` in its current state; the caller frees it. Returns NULL past the
 * last, and on failure with *err set to a negative errno. */
struct table *report_table_part(const struct report_table *t, size_t index, int *err);
/* Writes the tables of the time from the start, or from the last interval, to model_now().
 * Returns 0 or -errno. */
int report_table_write(struct report_table *t, FILE *out);
/* Writes one interval under a heading (JSON: on one line) and starts the next. `terminal`:
 * clears the screen first. Returns 0 or -errno. */
int report_table_interval(struct report_table *t, bool terminal, FILE *out);

struct figures_kind;

/* Returns table number `index` of all tables, in the order in which the help lists them; NULL past
 * the last. */
const struct figures_kind *report_table_kind(size_t index);
/* Writes the words that --per accepts for this table, separated by commas. */
void report_table_splits(const struct figures_kind *kind, char *out, size_t out_bytes);

#endif
