/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables of figures, of a recording as a whole (`report RUN.vcs TABLE`) or of an interval (`watch
 * TABLE`): figures.h has their kinds. Some names stand for a page, several tables that answer one
 * question; --per and --than leave those of them out that they do not fit.
 */
#ifndef TABLES_REPORT_TABLES_H
#define TABLES_REPORT_TABLES_H

#include <stdint.h>
#include <stdio.h>

#include "host-collector/analyze/chain/chain.h"
#include "host-collector/tables/table.h"

/* What --per takes. */
#define REPORT_TABLE_PER "vcpu|pcpu|vector|task"

struct report_table_request {
	const char *table;
	const char *per;    /* one word of REPORT_TABLE_PER, or NULL */
	uint64_t than_ns;   /* 0: not asked for */
	uint64_t top;       /* rows; 0 all */
	const char *format; /* "text", "json" or "csv" */
	bool alone;         /* without the tables that answer the same question */
	/* Where the caller has chains already (per vCPU): tables of them are of these. Borrowed,
	 * and finished by the caller. */
	struct chains *chains;
};

/* Can this be shown? 0, or -EINVAL and one line in `why` that says what is possible. */
int report_table_check(const struct report_table_request *request, char *why, size_t why_bytes);

struct report_table;

/* Subscribes to the model before events are played through it. `request` (checked) is borrowed.
 * NULL on ENOMEM. */
struct report_table *report_table_new(struct model *m, const struct report_table_request *request);
void report_table_free(struct report_table *t);
/* After model_finish. */
void report_table_finish(struct report_table *t);
/* Its table number `index` as it is now, the caller's to free; NULL past the last, or with *err
 * (-errno) on failure. */
struct table *report_table_part(const struct report_table *t, size_t index, int *err);
/* What happened since it began, or since the last interval, up to model_now. 0 or -errno. */
int report_table_write(struct report_table *t, FILE *out);
/* One interval of many: the same under a heading, JSON on one line; then all counts from here on.
 * `terminal`: on a cleared screen. 0 or -errno. */
int report_table_interval(struct report_table *t, bool terminal, FILE *out);

#endif
