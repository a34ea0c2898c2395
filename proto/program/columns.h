/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the width of the text that a program writes. */
#ifndef PROGRAM_COLUMNS_H
#define PROGRAM_COLUMNS_H

#include <stdio.h>

/* TEXT_COLUMNS: width of text that does not go to a terminal, unless the variable COLUMNS is set.
 */
enum { TEXT_COLUMNS = 100, TEXT_COLUMNS_LEAST = 40 };

/* Returns the width for text that is written to `out`: the environment variable COLUMNS, else the
 * width of the terminal, else TEXT_COLUMNS. NULL is a file that is not open yet. Streams in memory
 * have TEXT_COLUMNS. The result is at least TEXT_COLUMNS_LEAST. */
unsigned text_columns(FILE *out);

#endif
