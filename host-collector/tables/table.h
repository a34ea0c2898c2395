/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes one table, or several that belong together, as text, JSON or CSV. All three show the same
 * rows. Text gives each time a suitable unit; JSON and CSV give nanoseconds.
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
	TABLE_TIME, /* a time on the timeline; in text since table_origin(), in microseconds */
};

struct table_column {
	const char *name; /* name in JSON and CSV; TABLE_NS and TABLE_TIME get the suffix "_ns" */
	const char *head; /* heading in text */
	enum table_type type;
};

struct table;

/* Allocates a table without rows. `columns` are borrowed. Returns NULL on ENOMEM. */
struct table *table_new(const char *name, const struct table_column *columns, size_t n_columns);
void table_free(struct table *t);
/* Begins a row. Add the cells in the order of the columns. */
void table_row(struct table *t);
void table_text(struct table *t, const char *text); /* copied; escaped when written */
void table_count(struct table *t, uint64_t n);
void table_ns(struct table *t, int64_t ns);
void table_time(struct table *t, int64_t ns);
void table_percent(struct table *t, double percent);
/* Adds a cell that was not observed: "n/a" in text, null in JSON, empty in CSV. */
void table_none(struct table *t);
/* Removes the rows for which keep(context, row) returns false. `row` is for the functions below. */
void table_keep(struct table *t, bool (*keep)(void *context, const struct table *t, size_t row),
		void *context);
/* Return the text ("" if it is unknown), or the number of a cell: -1 if it is unknown. */
const char *table_cell_text(const struct table *t, size_t row, size_t column);
int64_t table_cell_number(const struct table *t, size_t row, size_t column);
/* Sorts by the number in column `by`, descending, then cuts to `top` rows (0: no limit). */
void table_sort(struct table *t, size_t by, size_t top);
/* Adds `n_rows` to the number of rows that were left out. */
void table_cut(struct table *t, size_t n_rows);
/* Makes text show each row as a block, for rows that are too wide for a line. */
void table_records(struct table *t);

/* Sets the time from which text counts times: the begin of the recording. Default: 0. */
void table_origin(struct table *t, int64_t origin_ns);
/* Sets the time that the table covers: "begin_ns" and "end_ns" in JSON. */
void table_span(struct table *t, int64_t begin_ns, int64_t end_ns);

/*
 * Write tables. Each returns 0, -ENOMEM (also if a row could not be kept) or -EIO. Text states how
 * many rows were left out. For several tables, JSON is one object, schema vcpuscope.table/2
 * (docs/report-json.md): the first table, which contains the others. `line`: on one line. CSV
 * begins with a column that names the table, followed by the columns of all tables; cells that a
 * table does not have are empty.
 */
int table_write_text(const struct table *t, FILE *out);
int tables_write_csv(struct table *const *tables, size_t n, FILE *out);
int tables_write_json(struct table *const *tables, size_t n, bool line, FILE *out);
/* Writes name, columns (heading and type) and rows as JSON arrays on one line, for the HTML
 * page. */
int table_write_page(const struct table *t, FILE *out);
size_t table_rows(const struct table *t);
const char *table_name(const struct table *t);

#endif
