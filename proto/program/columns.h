/* SPDX-License-Identifier: GPL-2.0-only */
/* The width of the text that a program writes. */
#ifndef PROGRAM_COLUMNS_H
#define PROGRAM_COLUMNS_H

#include <stdio.h>

/* The width of text that goes neither to a terminal nor has the variable COLUMNS. */
enum { TEXT_COLUMNS = 100, TEXT_COLUMNS_LEAST = 40 };

/* Returns the width for text that is written to `out`: the environment variable COLUMNS, else the
 * width of the terminal, else TEXT_COLUMNS. NULL is a file that is not open yet. Streams in memory
 * have TEXT_COLUMNS. Narrower ones than TEXT_COLUMNS_LEAST count as that. */
unsigned text_columns(FILE *out);

#endif
