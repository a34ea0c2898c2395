/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "host-collector/analyze/describe.h"
#include "host-collector/view/escape.h"
#include "host-collector/view/json_string.h"

enum { CELL_BYTES = 128, COLUMNS_MAX = 32 };

struct cell {
	double percent;
	int64_t number;
	char *text;
	bool none;
};

struct table {
	const char *name;
	const struct table_column *columns;
	size_t n_columns, n_rows, capacity, filled; /* filled: cells of the last row */
	struct cell *cells;
	size_t sort_by;
	int64_t begin_ns, end_ns; /* if spanned */
	bool spanned;
	int error;
};

struct table *table_new(const char *name, const struct table_column *columns, size_t n_columns)
{
	struct table *t = n_columns <= COLUMNS_MAX ? calloc(1, sizeof(*t)) : NULL;

	if (!t)
		return NULL;
	t->name = name;
	t->columns = columns;
	t->n_columns = n_columns;
	return t;
}

static void row_free(const struct table *t, size_t row)
{
	for (size_t c = 0; c < t->n_columns; c++)
		free(t->cells[row * t->n_columns + c].text);
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t row = 0; row < t->n_rows; row++)
		row_free(t, row);
	free(t->cells);
	free(t);
}

void table_row(struct table *t)
{
	if (t->n_rows == t->capacity) {
		size_t capacity = t->capacity ? 2 * t->capacity : 64;
		struct cell *cells =
			reallocarray(t->cells, capacity, t->n_columns * sizeof(*cells));

		if (!cells) {
			t->error = -ENOMEM;
			return;
		}
		t->cells = cells;
		t->capacity = capacity;
	}
	memset(&t->cells[t->n_rows * t->n_columns], 0, t->n_columns * sizeof(*t->cells));
	t->n_rows++;
	t->filled = 0;
}

static void cell_put(struct table *t, enum table_type type, struct cell value)
{
	if (t->error || !t->n_rows || t->filled == t->n_columns ||
	    t->columns[t->filled].type != type) {
		free(value.text);
		t->error = t->error ? t->error : -EINVAL;
		return;
	}
	t->cells[(t->n_rows - 1) * t->n_columns + t->filled++] = value;
}

void table_text(struct table *t, const char *text)
{
	struct cell value = {.text = strdup(text)};

	if (!value.text)
		t->error = -ENOMEM;
	cell_put(t, TABLE_TEXT, value);
}

void table_count(struct table *t, uint64_t n)
{
	cell_put(t, TABLE_COUNT, (struct cell){.number = n > INT64_MAX ? INT64_MAX : (int64_t)n});
}

void table_ns(struct table *t, int64_t ns)
{
	cell_put(t, TABLE_NS, (struct cell){.number = ns});
}

void table_percent(struct table *t, double percent)
{
	cell_put(t, TABLE_PERCENT, (struct cell){.percent = percent});
}

void table_none(struct table *t)
{
	cell_put(t, t->filled < t->n_columns ? t->columns[t->filled].type : TABLE_TEXT,
		 (struct cell){.none = true});
}

void table_span(struct table *t, int64_t begin_ns, int64_t end_ns)
{
	t->spanned = true;
	t->begin_ns = begin_ns;
	t->end_ns = end_ns;
}

static int row_compare(const void *a, const void *b, void *context)
{
	const struct table *t = context;
	const struct cell *x = (const struct cell *)a + t->sort_by;
	const struct cell *y = (const struct cell *)b + t->sort_by;

	if (t->columns[t->sort_by].type == TABLE_PERCENT)
		return (x->percent < y->percent) - (x->percent > y->percent);
	return (x->number < y->number) - (x->number > y->number);
}

void table_sort(struct table *t, size_t by, size_t top)
{
	t->sort_by = by;
	if (t->n_rows)
		qsort_r(t->cells, t->n_rows, t->n_columns * sizeof(*t->cells), row_compare, t);
	while (top && t->n_rows > top)
		row_free(t, --t->n_rows);
}

/* ---- text ---- */

static void cell_draw(const struct table *t, size_t row, size_t column, char *text)
{
	const struct cell *c = &t->cells[row * t->n_columns + column];

	if (c->none) {
		snprintf(text, CELL_BYTES, "n/a");
		return;
	}
	switch (t->columns[column].type) {
	case TABLE_TEXT:
		snprintf(text, CELL_BYTES, "%.100s", escape(c->text ? c->text : "").text);
		break;
	case TABLE_COUNT:
		snprintf(text, CELL_BYTES, "%" PRId64, c->number);
		break;
	case TABLE_NS:
		snprintf(text, CELL_BYTES, "%s", c->number ? duration_text(c->number).text : "-");
		break;
	case TABLE_PERCENT:
		snprintf(text, CELL_BYTES, "%.1f %%", c->percent);
		break;
	}
}

static int written(const struct table *t, FILE *out)
{
	if (t->error)
		return t->error;
	return fflush(out) || ferror(out) ? -EIO : 0;
}

int table_write_text(const struct table *t, FILE *out)
{
	int widths[COLUMNS_MAX];
	char text[CELL_BYTES];

	for (size_t c = 0; c < t->n_columns; c++) {
		widths[c] = (int)strlen(t->columns[c].head);
		for (size_t row = 0; row < t->n_rows; row++) {
			cell_draw(t, row, c, text);
			if ((int)strlen(text) > widths[c])
				widths[c] = (int)strlen(text);
		}
	}
	for (size_t row = 0; row <= t->n_rows; row++) {
		for (size_t c = 0; c < t->n_columns; c++) {
			bool left = t->columns[c].type == TABLE_TEXT;
			bool last = c + 1 == t->n_columns;

			if (row)
				cell_draw(t, row - 1, c, text);
			else
				snprintf(text, sizeof(text), "%s", t->columns[c].head);
			fprintf(out, "%*s%s", left ? (last ? 0 : -widths[c]) : widths[c], text,
				last ? "\n" : "  ");
		}
	}
	return written(t, out);
}

/* ---- CSV, RFC 4180 ---- */

static const char *unit(enum table_type type)
{
	return type == TABLE_NS ? "_ns" : type == TABLE_PERCENT ? "_percent" : "";
}

/* A spreadsheet would take a text that begins so for a formula. */
static bool is_formula(const char *text)
{
	return *text && strchr("=+-@", *text);
}

static void csv_text(const char *text, FILE *out)
{
	struct escaped safe = escape(text);

	fputc('"', out);
	if (is_formula(safe.text))
		fputc('\'', out);
	for (const char *p = safe.text; *p; p++) {
		if (*p == '"')
			fputc('"', out);
		fputc(*p, out);
	}
	fputc('"', out);
}

int table_write_csv(const struct table *t, FILE *out)
{
	for (size_t c = 0; c < t->n_columns; c++)
		fprintf(out, "%s%s%s", t->columns[c].name, unit(t->columns[c].type),
			c + 1 < t->n_columns ? "," : "\r\n");
	for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
		const struct cell *cell = &t->cells[i];
		size_t c = i % t->n_columns;

		if (cell->none)
			; /* an empty field */
		else if (t->columns[c].type == TABLE_TEXT)
			csv_text(cell->text ? cell->text : "", out);
		else if (t->columns[c].type == TABLE_PERCENT)
			fprintf(out, "%.3f", cell->percent);
		else
			fprintf(out, "%" PRId64, cell->number);
		fputs(c + 1 < t->n_columns ? "," : "\r\n", out);
	}
	return written(t, out);
}

/* ---- JSON ---- */

static struct json_object *cell_json(const struct cell *cell, enum table_type type)
{
	if (cell->none)
		return NULL;
	if (type == TABLE_TEXT)
		return json_string_new(cell->text ? cell->text : "");
	if (type == TABLE_PERCENT)
		return json_object_new_double(cell->percent);
	return json_object_new_int64(cell->number);
}

static int json_write(const struct table *t, int flags, FILE *out)
{
	struct json_object *root = json_object_new_object(), *rows = json_object_new_array();
	char key[64];

	for (size_t row = 0; row < t->n_rows; row++) {
		struct json_object *object = json_object_new_object();

		for (size_t c = 0; c < t->n_columns; c++) {
			snprintf(key, sizeof(key), "%s%s", t->columns[c].name,
				 unit(t->columns[c].type));
			json_object_object_add(
				object, key,
				cell_json(&t->cells[row * t->n_columns + c], t->columns[c].type));
		}
		json_object_array_add(rows, object);
	}
	json_object_object_add(root, "schema", json_object_new_string("vcpuscope.table/1"));
	json_object_object_add(root, "table", json_object_new_string(t->name));
	if (t->spanned) {
		json_object_object_add(root, "begin_ns", json_object_new_int64(t->begin_ns));
		json_object_object_add(root, "end_ns", json_object_new_int64(t->end_ns));
	}
	json_object_object_add(root, "rows", rows);
	fprintf(out, "%s\n", json_object_to_json_string_ext(root, flags));
	json_object_put(root);
	return written(t, out);
}

int table_write_json(const struct table *t, FILE *out)
{
	return json_write(t, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE, out);
}

int table_write_json_line(const struct table *t, FILE *out)
{
	return json_write(t, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, out);
}
