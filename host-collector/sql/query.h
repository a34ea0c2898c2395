/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs an SQL query over a recording, and writes a recording as an SQLite database. A query only
 * reads: an authorizer refuses statements that open files, change data or load code. Memory is
 * bounded by SQL_MEMORY_BYTES.
 */
#ifndef SQL_QUERY_H
#define SQL_QUERY_H

#include <stdio.h>

#include "host-collector/sql/rows.h"

enum { SQL_MEMORY_BYTES = 256 << 20 };

/* The reason for -ENOTSUP. */
#define SQL_NOT_BUILT "this build has no SQLite: build with -DVCPUSCOPE_SQLITE=ON"

enum sql_format { SQL_TEXT, SQL_CSV, SQL_JSON };

/* Runs one statement and writes its rows. Returns 0; -EINVAL: the statement is wrong or refused;
 * -ECANCELED: it was stopped; -ENOTSUP: this build has no SQLite; or another -errno. After an
 * error, `why` has one line with the reason. */
int sql_query_run(const struct sql_source *source, const char *sql, enum sql_format format,
		  FILE *out, char *why, size_t why_bytes);
/* Writes the declarations of the tables. Returns 0 or -ENOTSUP. */
int sql_schema_write(FILE *out);
/* Writes the tables to a new database at `path`, which must not exist, with an index on each time.
 * Returns as sql_query_run(). */
int sql_database_write(const struct sql_source *source, const char *path, char *why,
		       size_t why_bytes);

#endif
