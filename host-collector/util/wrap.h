/* SPDX-License-Identifier: GPL-2.0-only */
/* Text of any width on a page of 100 columns: long lines go on below where their text began. */
#ifndef UTIL_WRAP_H
#define UTIL_WRAP_H

#include <stdio.h>

enum { WRAP_COLUMNS = 100 };

/* A stream that breaks what is written to it into lines of at most WRAP_COLUMNS and passes them on;
 * colours take no room. fclose() it before `to`, to which the last line goes then. NULL on ENOMEM.
 */
FILE *wrap_open(FILE *to);
/* The same for one text at a time, which ends with a line. */
void wrap_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Characters of a text, colours left out. */
unsigned wrap_width(const char *text);

#endif
