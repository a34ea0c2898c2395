/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/tables/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "host-collector/util/csv.h"
#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/json_string.h"
#include "host-collector/util/wrap.h"
#include "proto/array.h"

enum {
	CELL_BYTES = 128,
	KEYS_MAX = 4,
	KEY_WIDTH = 16,
	COLUMNS_MAX = 32,
};

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
	int64_t origin_ns;        /* from when text counts times */
	bool spanned, records;
	size_t n_cut;
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
	const int err = array_reserve(&t->cells, t->n_rows, &t->capacity, 64,
				      t->n_columns * sizeof(*t->cells));

	if (err) {
		t->error = err;
		return;
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

void table_time(struct table *t, int64_t ns)
{
	cell_put(t, TABLE_TIME, (struct cell){.number = ns});
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

void table_origin(struct table *t, int64_t origin_ns)
{
	t->origin_ns = origin_ns;
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
	while (top && t->n_rows > top) {
		row_free(t, --t->n_rows);
		t->n_cut++;
	}
}

void table_keep(struct table *t, bool (*keep)(void *context, const struct table *t, size_t row),
		void *context)
{
	size_t kept = 0;

	for (size_t row = 0; row < t->n_rows; row++) {
		if (!keep(context, t, row)) {
			row_free(t, row);
			continue;
		}
		if (kept != row)
			memcpy(&t->cells[kept * t->n_columns], &t->cells[row * t->n_columns],
			       t->n_columns * sizeof(*t->cells));
		kept++;
	}
	t->n_rows = kept;
	t->filled = t->n_columns;
}

const char *table_cell_text(const struct table *t, size_t row, size_t column)
{
	const char *text = t->cells[row * t->n_columns + column].text;

	return text ? text : "";
}

int64_t table_cell_number(const struct table *t, size_t row, size_t column)
{
	const struct cell *c = &t->cells[row * t->n_columns + column];

	return c->none ? -1 : c->number;
}

void table_cut(struct table *t, size_t n_rows)
{
	t->n_cut += n_rows;
}

void table_records(struct table *t)
{
	t->records = true;
}

size_t table_rows(const struct table *t)
{
	return t->n_rows;
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
	case TABLE_TIME:
		snprintf(text, CELL_BYTES, "+%.6f s", (double)(c->number - t->origin_ns) / 1e9);
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

static int width_of(const char *text)
{
	return (int)wrap_width(text);
}

static void cell_write(const struct table *t, size_t row, size_t column, int width, bool last,
		       FILE *out)
{
	bool left = t->columns[column].type == TABLE_TEXT;
	char text[CELL_BYTES];
	int blanks;

	if (row)
		cell_draw(t, row - 1, column, text);
	else
		snprintf(text, sizeof(text), "%s", t->columns[column].head);
	if (width_of(text) > width) { /* a name that is too long; the other formats have it whole */
		size_t len = 0;

		for (int n = 0; n < width - 2; n++)
			len += character_at(text + len).bytes;
		strcpy(text + len, "..");
	}
	blanks = width - width_of(text);
	fprintf(out, "%*s%s%*s%s", left ? 0 : blanks, "", text, left && !last ? blanks : 0, "",
		last ? "\n" : "  ");
}

/* Does this column only explain the name of a row? */
static bool is_detail(const struct table_column *c)
{
	return c->type == TABLE_TEXT && (!strcmp(c->name, "owner") || !strcmp(c->name, "cgroup"));
}

/* A column of details of which no row has any. */
static bool is_void(const struct table *t, size_t column)
{
	for (size_t row = 0; row < t->n_rows; row++) {
		const char *text = t->cells[row * t->n_columns + column].text;

		if (text && *text)
			return false;
	}
	return true;
}

/* Does this column say what a row is about? Names do, and numbers of CPUs and tasks. */
static bool is_key(const struct table_column *c)
{
	static const char *const numbers[] = {"vcpu", "guest_cpu", "pcpu", "cpu", "pid", "irq"};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (c->type == TABLE_COUNT && !strcmp(c->name, numbers[i]))
			return true;
	}
	return c->type == TABLE_TEXT && !is_detail(c);
}

static void block_draw(const struct table *t, const int *widths, const size_t *columns, size_t n,
		       FILE *out)
{
	for (size_t row = 0; row <= t->n_rows; row++) {
		for (size_t i = 0; i < n; i++)
			cell_write(t, row, columns[i], widths[columns[i]], i + 1 == n, out);
	}
}

/* A table that is too wide comes in blocks of columns, each with what its rows are about. */
static void lines_draw(const struct table *t, FILE *out)
{
	size_t shown[COLUMNS_MAX], keys = 0, next = 0;
	int widths[COLUMNS_MAX], all = -2, room, page = (int)wrap_columns(out);
	bool is_shown[COLUMNS_MAX] = {false};
	char text[CELL_BYTES];

	for (size_t c = 0; c < t->n_columns; c++) {
		if (is_detail(&t->columns[c]) && is_void(t, c)) {
			is_shown[c] = true; /* not at all */
			continue;
		}
		widths[c] = width_of(t->columns[c].head);
		for (size_t row = 0; row < t->n_rows; row++) {
			cell_draw(t, row, c, text);
			if (width_of(text) > widths[c])
				widths[c] = width_of(text);
		}
		all += widths[c] + 2;
	}
	for (size_t c = 0; c < t->n_columns && all > page; c++) {
		if (t->columns[c].type == TABLE_TEXT && !is_detail(&t->columns[c]) &&
		    widths[c] > KEY_WIDTH)
			widths[c] = KEY_WIDTH;
		if (keys < KEYS_MAX && is_key(&t->columns[c])) {
			shown[keys++] = c;
			is_shown[c] = true;
		}
	}
	do {
		size_t n = keys;

		room = page;
		for (size_t i = 0; i < keys; i++)
			room -= widths[shown[i]] + 2;
		for (; next < t->n_columns; next++) {
			if (is_shown[next])
				continue;
			if (n > keys && widths[next] > room)
				break;
			shown[n++] = next;
			room -= widths[next] + 2;
		}
		block_draw(t, widths, shown, n, out);
		if (next < t->n_columns)
			fputc('\n', out);
	} while (next < t->n_columns);
}

/* "head value, " into the line under way, which breaks before it is too long. */
static void record_part(int *width, const char *head, const char *text, bool last, FILE *out)
{
	int len = (int)(strlen(head) + wrap_width(text)) + 3;

	if (*width + len > (int)wrap_columns(out)) {
		fprintf(out, "\n   ");
		*width = 3;
	}
	*width +=
		fprintf(out, " %s%s%s%s", head, *head && *text ? " " : "", text, last ? "\n" : ",");
}

static void record_draw(const struct table *t, size_t row, FILE *out)
{
	const struct cell *cells = &t->cells[row * t->n_columns];
	int width = fprintf(out, "%2zu.", row + 1);
	char text[CELL_BYTES];
	size_t left = t->n_columns, unseen = 0;

	for (size_t c = 0; c < t->n_columns; c++)
		unseen += cells[c].none;
	for (size_t c = 0; c < t->n_columns; c++) {
		if (cells[c].none)
			continue;
		cell_draw(t, row, c, text);
		record_part(&width, t->columns[c].head, text, --left == 0, out);
	}
	for (size_t c = 0; c < t->n_columns && unseen; c++) {
		if (!cells[c].none)
			continue;
		if (left == unseen) {
			fprintf(out, "\n    not observed:");
			width = 17;
		}
		record_part(&width, t->columns[c].head, "", --left == 0, out);
	}
}

int table_write_text(const struct table *t, FILE *out)
{
	if (!t->records)
		lines_draw(t, out);
	for (size_t row = 0; t->records && row < t->n_rows; row++)
		record_draw(t, row, out);
	if (t->n_cut)
		fprintf(out, "and %zu more; --top 0 shows all\n", t->n_cut);
	return written(t, out);
}

/* ---- CSV, RFC 4180 ---- */

static const char *unit(enum table_type type)
{
	return type == TABLE_NS || type == TABLE_TIME ? "_ns"
	       : type == TABLE_PERCENT                ? "_percent"
						      : "";
}

static void csv_cell(const struct cell *cell, enum table_type type, FILE *out)
{
	if (cell->none)
		; /* an empty field */
	else if (type == TABLE_TEXT)
		csv_text_write(cell->text ? cell->text : "", out);
	else if (type == TABLE_PERCENT)
		fprintf(out, "%.3f", cell->percent);
	else
		fprintf(out, "%" PRId64, cell->number);
}

/* Which column of `t` is meant by `like`; n_columns: none. */
static size_t column_find(const struct table *t, const struct table_column *like)
{
	size_t c = 0;

	while (c < t->n_columns &&
	       (t->columns[c].type != like->type || strcmp(t->columns[c].name, like->name) != 0))
		c++;
	return c;
}

/* The columns of all tables, each once: in `all`, which holds n * COLUMNS_MAX. */
static size_t columns_unite(struct table *const *tables, size_t n, const struct table_column **all)
{
	size_t n_all = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t c = 0; c < tables[i]->n_columns; c++) {
			const struct table_column *column = &tables[i]->columns[c];
			bool known = false;

			for (size_t k = 0; k < i && !known; k++)
				known = column_find(tables[k], column) < tables[k]->n_columns;
			if (!known)
				all[n_all++] = column;
		}
	}
	return n_all;
}

int tables_write_csv(struct table *const *tables, size_t n, FILE *out)
{
	const struct table_column **all = calloc(n, COLUMNS_MAX * sizeof(*all));
	size_t n_all = all ? columns_unite(tables, n, all) : 0;
	int err = all ? 0 : -ENOMEM;

	for (size_t c = 0; c < n_all; c++)
		fprintf(out, "%s%s%s%s", c == 0 && n > 1 ? "table," : "", all[c]->name,
			unit(all[c]->type), c + 1 < n_all ? "," : "\r\n");
	for (size_t i = 0; i < n && !err; i++) {
		const struct table *t = tables[i];

		for (size_t row = 0; row < t->n_rows; row++) {
			if (n > 1)
				fprintf(out, "%s,", t->name);
			for (size_t c = 0; c < n_all; c++) {
				size_t at = column_find(t, all[c]);

				if (at < t->n_columns)
					csv_cell(&t->cells[row * t->n_columns + at], all[c]->type,
						 out);
				fputs(c + 1 < n_all ? "," : "\r\n", out);
			}
		}
		err = written(t, out);
	}
	free(all);
	return err;
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

static struct json_object *rows_json(const struct table *t)
{
	struct json_object *rows = json_object_new_array();
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
	return rows;
}

int tables_write_json(struct table *const *tables, size_t n, bool line, FILE *out)
{
	struct json_object *root = json_object_new_object(), *others = json_object_new_array();
	const struct table *first = tables[0];
	int err = 0;

	json_object_object_add(root, "schema", json_object_new_string("vcpuscope.table/2"));
	json_object_object_add(root, "table", json_object_new_string(first->name));
	if (first->spanned) {
		json_object_object_add(root, "begin_ns", json_object_new_int64(first->begin_ns));
		json_object_object_add(root, "end_ns", json_object_new_int64(first->end_ns));
	}
	json_object_object_add(root, "rows", rows_json(first));
	for (size_t i = 1; i < n; i++) {
		struct json_object *other = json_object_new_object();

		json_object_object_add(other, "table", json_object_new_string(tables[i]->name));
		json_object_object_add(other, "rows", rows_json(tables[i]));
		json_object_array_add(others, other);
	}
	if (n > 1)
		json_object_object_add(root, "tables", others);
	else
		json_object_put(others);
	fprintf(out, "%s\n",
		json_object_to_json_string_ext(
			root, JSON_C_TO_STRING_NOSLASHESCAPE |
				      (line ? JSON_C_TO_STRING_PLAIN : JSON_C_TO_STRING_PRETTY)));
	json_object_put(root);
	for (size_t i = 0; i < n && !err; i++)
		err = written(tables[i], out);
	return err;
}

const char *table_name(const struct table *t)
{
	return t->name;
}

/* ---- for a page ---- */

static struct json_object *columns_json(const struct table *t)
{
	static const char *const types[] = {[TABLE_TEXT] = "text",
					    [TABLE_COUNT] = "count",
					    [TABLE_NS] = "ns",
					    [TABLE_PERCENT] = "percent",
					    [TABLE_TIME] = "time"};
	struct json_object *columns = json_object_new_array();

	for (size_t c = 0; c < t->n_columns; c++) {
		struct json_object *column = json_object_new_object();

		json_object_object_add(column, "name", json_string_new(t->columns[c].name));
		json_object_object_add(column, "head", json_string_new(t->columns[c].head));
		json_object_object_add(column, "type", json_string_new(types[t->columns[c].type]));
		json_object_array_add(columns, column);
	}
	return columns;
}

int table_write_page(const struct table *t, FILE *out)
{
	struct json_object *root = json_object_new_object(), *rows = json_object_new_array();

	for (size_t row = 0; row < t->n_rows; row++) {
		struct json_object *cells = json_object_new_array();

		for (size_t c = 0; c < t->n_columns; c++)
			json_object_array_add(cells, cell_json(&t->cells[row * t->n_columns + c],
							       t->columns[c].type));
		json_object_array_add(rows, cells);
	}
	json_object_object_add(root, "name", json_string_new(t->name));
	json_object_object_add(root, "columns", columns_json(t));
	json_object_object_add(root, "rows_cut", json_object_new_uint64(t->n_cut));
	json_object_object_add(root, "rows", rows);
	fputs(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN |
							   JSON_C_TO_STRING_NOSLASHESCAPE),
	      out);
	json_object_put(root);
	return written(t, out);
}
