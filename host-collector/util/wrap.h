/* SPDX-License-Identifier: GPL-2.0-only */
/* Wraps lines to the width of the terminal. A continuation line is indented to the column in which
 * the text after the labels of its line begins. */
#ifndef UTIL_WRAP_H
#define UTIL_WRAP_H

#include <stdio.h>

/* Returns text_columns(), the width for text that is written to `out` (proto/program/columns.h). */
unsigned wrap_columns(FILE *out);
/* Opens a stream that wraps its lines at wrap_columns(to) and writes them to `to`. Colour sequences
 * have no width. fclose() writes the last, unfinished line, so `to` must be closed later. Returns
 * NULL on ENOMEM. */
FILE *wrap_open(FILE *to);
/* Formats a text that ends with a newline, wraps it and writes it to `to`. */
void wrap_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns the number of characters in `text` without colour sequences. */
unsigned wrap_width(const char *text);

#endif
