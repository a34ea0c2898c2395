/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes CSV cells (RFC 4180) that hold text from a guest or from another user. */
#ifndef UTIL_CSV_H
#define UTIL_CSV_H

#include <stdio.h>

/* Writes `text` to `out` as a quoted cell, escaped as in escape.h. If a spreadsheet could take the
 * text for a formula, a ' precedes it. */
void csv_text_write(const char *text, FILE *out);

#endif
