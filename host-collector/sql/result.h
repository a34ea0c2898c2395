/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the rows of a statement as text in columns, as CSV, or as a JSON array of objects. */
#ifndef SQL_RESULT_H
#define SQL_RESULT_H

#include <sqlite3.h>

#include "host-collector/sql/query.h"

struct sql_result;

/* Both arguments are borrowed. Returns NULL on ENOMEM. */
struct sql_result *sql_result_new(sqlite3_stmt *statement, enum sql_format format, FILE *out);
void sql_result_free(struct sql_result *r); /* NULL is allowed */
/* Writes the statement's current row. Text holds back the first rows, to align its columns. Returns
 * 0 or -errno. */
int sql_result_row(struct sql_result *r);
/* Writes what is held back, and the end. Returns 0 or -errno. */
int sql_result_end(struct sql_result *r);

#endif
