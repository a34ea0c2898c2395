/* SPDX-License-Identifier: GPL-2.0-only */
/* Prints the names that reports use, with their meaning, for make-pages (deploy/pages). */
#ifndef CLI_NAMES_DUMP_H
#define CLI_NAMES_DUMP_H

#include <stdio.h>

/* Prints one record for each verdict, confidence, missing data, state of a vCPU, table and column
 * of a table. */
void names_dump(FILE *to);

#endif
