/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/sql/result.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "host-collector/util/csv.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/json_string.h"
#include "host-collector/util/wrap.h"

/* So many rows decide how wide the columns are. */
enum { ROWS_HELD = 200 };

struct sql_result {
	sqlite3_stmt *statement;
	enum sql_format format;
	FILE *out;
	int n_columns;
	uint64_t n_rows;
	unsigned *widths;
	size_t n_held;
	char **held; /* cells as text */
};

struct sql_result *sql_result_new(sqlite3_stmt *statement, enum sql_format format, FILE *out)
{
	struct sql_result *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->statement = statement;
	r->format = format;
	r->out = out;
	r->n_columns = sqlite3_column_count(statement);
	r->widths = calloc((size_t)r->n_columns + 1, sizeof(*r->widths));
	r->held = calloc((size_t)r->n_columns * ROWS_HELD + 1, sizeof(char *));
	if (r->widths && r->held)
		return r;
	sql_result_free(r);
	return NULL;
}

void sql_result_free(struct sql_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->held && i < r->n_held * (size_t)r->n_columns; i++)
		free(r->held[i]);
	free(r->held);
	free(r->widths);
	free(r);
}

/* ---- cells ---- */

static bool is_number(const struct sql_result *r, int column)
{
	int type = sqlite3_column_type(r->statement, column);

	return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static const char *blob_text(const struct sql_result *r, int column, char *out, size_t out_bytes)
{
	const unsigned char *bytes = sqlite3_column_blob(r->statement, column);
	size_t n = (size_t)sqlite3_column_bytes(r->statement, column), used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < n && used + 3 < out_bytes; i++)
		used += (size_t)snprintf(out + used, out_bytes - used, "%02x", bytes[i]);
	return out;
}

/* A number or a text, not escaped. NULL: no value. */
static const char *cell_text(const struct sql_result *r, int column, char *out, size_t out_bytes)
{
	switch (sqlite3_column_type(r->statement, column)) {
	case SQLITE_NULL:
		return NULL;
	case SQLITE_INTEGER:
		snprintf(out, out_bytes, "%" PRId64,
			 (int64_t)sqlite3_column_int64(r->statement, column));
		return out;
	case SQLITE_FLOAT:
		snprintf(out, out_bytes, "%.15g", sqlite3_column_double(r->statement, column));
		return out;
	case SQLITE_BLOB:
		return blob_text(r, column, out, out_bytes);
	default:
		return (const char *)sqlite3_column_text(r->statement, column);
	}
}

/* ---- text ---- */

static void text_cell_write(struct sql_result *r, int column, const char *text, bool right)
{
	unsigned width = wrap_width(text);
	int pad = width < r->widths[column] ? (int)(r->widths[column] - width) : 0;
	bool last = column + 1 == r->n_columns;

	fprintf(r->out, "%*s%s%*s%s", right ? pad : 0, "", text, right || last ? 0 : pad, "",
		last ? "\n" : "  ");
}

static void text_head_write(struct sql_result *r)
{
	for (int c = 0; c < r->n_columns; c++) {
		const char *name = sqlite3_column_name(r->statement, c);

		text_cell_write(r, c, escape(name ? name : "").text, false);
	}
}

/* Held cells are numbers if they look so: their types are gone. */
static bool looks_right(const char *text)
{
	return text[strspn(text, "-+.0123456789e")] == '\0' && *text;
}

static void text_held_write(struct sql_result *r)
{
	for (int c = 0; c < r->n_columns; c++) {
		const char *name = sqlite3_column_name(r->statement, c);
		unsigned width = wrap_width(escape(name ? name : "").text);

		r->widths[c] = width;
		for (size_t row = 0; row < r->n_held; row++) {
			width = wrap_width(r->held[row * (size_t)r->n_columns + (size_t)c]);
			if (width > r->widths[c])
				r->widths[c] = width;
		}
	}
	text_head_write(r);
	for (size_t i = 0; i < r->n_held * (size_t)r->n_columns; i++) {
		text_cell_write(r, (int)(i % (size_t)r->n_columns), r->held[i],
				looks_right(r->held[i]));
		free(r->held[i]);
		r->held[i] = NULL;
	}
	r->n_held = 0;
}

static int text_row(struct sql_result *r)
{
	char number[64];

	for (int c = 0; c < r->n_columns; c++) {
		const char *text = cell_text(r, c, number, sizeof(number));
		struct escaped safe = escape(text ? text : "-");

		if (r->n_rows >= ROWS_HELD) {
			text_cell_write(r, c, safe.text, is_number(r, c));
			continue;
		}
		r->held[r->n_held * (size_t)r->n_columns + (size_t)c] = strdup(safe.text);
		if (!r->held[r->n_held * (size_t)r->n_columns + (size_t)c])
			return -ENOMEM;
	}
	r->n_held += r->n_rows < ROWS_HELD;
	if (r->n_rows == ROWS_HELD - 1)
		text_held_write(r);
	return 0;
}

/* ---- CSV ---- */

static void csv_head(struct sql_result *r)
{
	for (int c = 0; c < r->n_columns; c++) {
		const char *name = sqlite3_column_name(r->statement, c);

		if (c)
			fputc(',', r->out);
		csv_text_write(name ? name : "", r->out);
	}
	fputs("\r\n", r->out);
}

static void csv_row(struct sql_result *r)
{
	char number[64];

	for (int c = 0; c < r->n_columns; c++) {
		const char *text = cell_text(r, c, number, sizeof(number));

		if (c)
			fputc(',', r->out);
		if (text && is_number(r, c))
			fputs(text, r->out);
		else if (text)
			csv_text_write(text, r->out);
	}
	fputs("\r\n", r->out);
}

/* ---- JSON ---- */

static struct json_object *json_cell(const struct sql_result *r, int column)
{
	char text[64];

	switch (sqlite3_column_type(r->statement, column)) {
	case SQLITE_NULL:
		return NULL;
	case SQLITE_INTEGER:
		return json_object_new_int64(sqlite3_column_int64(r->statement, column));
	case SQLITE_FLOAT:
		if (!isfinite(sqlite3_column_double(r->statement, column)))
			return NULL;
		return json_object_new_double(sqlite3_column_double(r->statement, column));
	default:
		return json_string_new(cell_text(r, column, text, sizeof(text)));
	}
}

static int json_row(struct sql_result *r)
{
	struct json_object *row = json_object_new_object();
	const char *text;

	if (!row)
		return -ENOMEM;
	for (int c = 0; c < r->n_columns; c++) {
		const char *name = sqlite3_column_name(r->statement, c);

		json_object_object_add(row, name ? name : "", json_cell(r, c));
	}
	text = json_object_to_json_string_ext(row, JSON_C_TO_STRING_PLAIN |
							   JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		fprintf(r->out, "%s\n%s", r->n_rows ? "," : "[", text);
	json_object_put(row);
	return text ? 0 : -ENOMEM;
}

/* ---- */

int sql_result_row(struct sql_result *r)
{
	int err = 0;

	if (r->format == SQL_CSV && !r->n_rows)
		csv_head(r);
	if (r->format == SQL_TEXT)
		err = text_row(r);
	else if (r->format == SQL_JSON)
		err = json_row(r);
	else
		csv_row(r);
	r->n_rows++;
	return err ? err : ferror(r->out) ? -EIO : 0;
}

int sql_result_end(struct sql_result *r)
{
	if (r->format == SQL_TEXT && r->n_rows < ROWS_HELD)
		text_held_write(r);
	else if (r->format == SQL_CSV && !r->n_rows)
		csv_head(r);
	else if (r->format == SQL_JSON)
		fputs(r->n_rows ? "\n]\n" : "[]\n", r->out);
	return fflush(r->out) || ferror(r->out) ? -EIO : 0;
}
