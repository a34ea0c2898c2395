/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A table of figures, drawn as text for people, as JSON or as CSV for programs. The three show the
 * same rows; text shows times with a fitting unit, the others plain nanoseconds.
 */
#ifndef VIEW_TABLE_H
#define VIEW_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum table_type {
	TABLE_TEXT = 1,
	TABLE_COUNT,
	TABLE_NS,
	TABLE_PERCENT,
};

struct table_column {
	const char *name; /* in JSON and CSV; of TABLE_NS without the unit: "_ns" is added */
	const char *head; /* in text */
	enum table_type type;
};

struct table;

/* Columns are borrowed. NULL on ENOMEM. */
struct table *table_new(const char *name, const struct table_column *columns, size_t n_columns);
void table_free(struct table *t);
/* Begins a row; the cells follow in the order of the columns. */
void table_row(struct table *t);
void table_text(struct table *t, const char *text); /* copied; escaped when shown */
void table_count(struct table *t, uint64_t n);
void table_ns(struct table *t, int64_t ns);
void table_percent(struct table *t, double percent);
/* Not observed: "n/a" in text, null in JSON, nothing in CSV. */
void table_none(struct table *t);
/* Descending by the number in column `by`, then cut to `top` rows (0: all). */
void table_sort(struct table *t, size_t by, size_t top);

/* The time that the figures cover, on the timeline: in JSON "begin_ns" and "end_ns". */
void table_span(struct table *t, int64_t begin_ns, int64_t end_ns);

/* Each 0, -ENOMEM (also if a row could not be kept) or -EIO. JSON: one object, schema
 * vcpuscope.table/1 (docs/report-json.md). */
int table_write_text(const struct table *t, FILE *out);
int table_write_csv(const struct table *t, FILE *out);
int table_write_json(const struct table *t, FILE *out);
/* The same object on one line. */
int table_write_json_line(const struct table *t, FILE *out);

#endif
