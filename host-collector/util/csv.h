/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes CSV cells (RFC 4180) that hold text from a guest or from another user.
 *
 * A text cell is quoted and escaped as in escape.h. If a spreadsheet could take the text for a
 * formula, a ' precedes it.
 */
#ifndef UTIL_CSV_H
#define UTIL_CSV_H

#include <stdint.h>
#include <stdio.h>

/* Writes `text` to `out` as a text cell. For tables of few rows. */
void csv_text_write(const char *text, FILE *out);

/*
 * Writes files of millions of rows: it builds the rows in a buffer, because calls of stdio for each
 * cell would cost more than everything before them. The functions write exactly what they are
 * given; the caller adds commas and line ends.
 */
struct csv_writer {
	FILE *out; /* borrowed; its errors are those of the writer */
	size_t used;
	char buffer[16384];
};

void csv_writer_init(struct csv_writer *w, FILE *out);
/* Adds a text cell. */
void csv_text(struct csv_writer *w, const char *text);
/* Adds `text` as it is. It must be text of this program, shorter than the buffer. */
void csv_plain(struct csv_writer *w, const char *text);
/* Adds a number in decimal digits. */
void csv_number(struct csv_writer *w, int64_t number);
/* Passes the rows to `out`. Call it after the last row. */
void csv_writer_flush(struct csv_writer *w);

#endif
