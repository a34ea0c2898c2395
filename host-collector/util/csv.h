/* SPDX-License-Identifier: GPL-2.0-only */
/* Cells of CSV (RFC 4180) that hold text which a guest or another user chose. */
#ifndef UTIL_CSV_H
#define UTIL_CSV_H

#include <stdio.h>

/* Quoted and escaped; a text that a spreadsheet would take for a formula gets a ' in front. */
void csv_text_write(const char *text, FILE *out);

#endif
