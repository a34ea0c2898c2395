/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/csv.h"

#include <stdbool.h>
#include <string.h>

#include "host-collector/util/escape.h"

/* The quotes, the ' before a formula, and a text of quotes only. */
enum { CELL_MAX = 2 * ESCAPED_MAX + 3, DIGITS_MAX = 20 };

/* A spreadsheet would take a text that begins so for a formula. */
static bool is_formula(const char *text)
{
	return *text == '=' || *text == '+' || *text == '-' || *text == '@';
}

/* Spells the cell, without a final NUL. Returns its length, at most CELL_MAX. */
static size_t cell_spell(const char *text, char *out)
{
	struct escaped safe = escape(text);
	char *at = out;

	*at++ = '"';
	if (is_formula(safe.text))
		*at++ = '\'';
	for (const char *p = safe.text; *p; p++) {
		if (*p == '"')
			*at++ = '"';
		*at++ = *p;
	}
	*at++ = '"';
	return (size_t)(at - out);
}

void csv_text_write(const char *text, FILE *out)
{
	char cell[CELL_MAX];

	fwrite(cell, 1, cell_spell(text, cell), out);
}

void csv_writer_init(struct csv_writer *w, FILE *out)
{
	w->out = out;
	w->used = 0;
}

void csv_writer_flush(struct csv_writer *w)
{
	fwrite(w->buffer, 1, w->used, w->out);
	w->used = 0;
}

/* Returns where the next `most` bytes at most go. */
static char *room_for(struct csv_writer *w, size_t most)
{
	if (sizeof(w->buffer) - w->used < most)
		csv_writer_flush(w);
	return w->buffer + w->used;
}

void csv_text(struct csv_writer *w, const char *text)
{
	w->used += cell_spell(text, room_for(w, CELL_MAX));
}

void csv_plain(struct csv_writer *w, const char *text)
{
	size_t n = strlen(text);

	memcpy(room_for(w, n), text, n);
	w->used += n;
}

void csv_number(struct csv_writer *w, int64_t number)
{
	uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
	char digits[DIGITS_MAX], *at = digits + sizeof(digits);
	size_t n;

	do {
		*--at = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (number < 0)
		*--at = '-';
	n = (size_t)(digits + sizeof(digits) - at);
	memcpy(room_for(w, DIGITS_MAX), at, n);
	w->used += n;
}
