/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A table of figures, or several that belong together, drawn as text for people, as JSON or as CSV
 * for programs. The three show the same rows; text shows times with a fitting unit, the others
 * plain nanoseconds.
 */
#ifndef TABLES_TABLE_H
#define TABLES_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum table_type {
	TABLE_TEXT = 1,
	TABLE_COUNT,
	TABLE_NS,
	TABLE_PERCENT,
	TABLE_TIME, /* a point on the timeline; in text since table_origin, to the microsecond */
};

struct table_column {
	const char *name; /* in JSON and CSV; of TABLE_NS and TABLE_TIME without the unit: "_ns" is
			     added */
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
void table_time(struct table *t, int64_t ns);
void table_percent(struct table *t, double percent);
/* Not observed: "n/a" in text, null in JSON, nothing in CSV. */
void table_none(struct table *t);
/* Descending by the number in column `by`, then cut to `top` rows (0: all). */
void table_sort(struct table *t, size_t by, size_t top);
/* Rows that were left out before they came here. */
void table_cut(struct table *t, size_t n_rows);
/* As text, each row is a block of its own: for rows that no line holds. */
void table_records(struct table *t);

/* From when text counts points in time: the recording's begin. Without it, 0. */
void table_origin(struct table *t, int64_t origin_ns);
/* The time that the figures cover, on the timeline: in JSON "begin_ns" and "end_ns". */
void table_span(struct table *t, int64_t begin_ns, int64_t end_ns);

/*
 * Each 0, -ENOMEM (also if a row could not be kept) or -EIO. Text tells how many rows were cut. Of
 * several tables, JSON has one object, schema vcpuscope.table/2 (docs/report-json.md), the first
 * one's, with the others in it; `line`: on one line. CSV has the columns of all behind one that
 * names the table; what a table has not stays empty.
 */
int table_write_text(const struct table *t, FILE *out);
int tables_write_csv(struct table *const *tables, size_t n, FILE *out);
int tables_write_json(struct table *const *tables, size_t n, bool line, FILE *out);
/* For a page that draws it: name, columns (head and type) and rows as arrays, on one line. */
int table_write_page(const struct table *t, FILE *out);
size_t table_rows(const struct table *t);
const char *table_name(const struct table *t);

#endif
