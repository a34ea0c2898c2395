/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces the files that need SQLite in a build without it. */
#include "host-collector/sql/query.h"

#include <errno.h>

static int nothing(char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "%s", SQL_NOT_BUILT);
	return -ENOTSUP;
}

int sql_query_run(const struct sql_source *source, const char *sql, enum sql_format format,
		  FILE *out, char *why, size_t why_bytes)
{
	(void)source;
	(void)sql;
	(void)format;
	(void)out;
	return nothing(why, why_bytes);
}

int sql_schema_write(FILE *out)
{
	(void)out;
	return -ENOTSUP;
}

int sql_database_write(const struct sql_source *source, const char *path, char *why,
		       size_t why_bytes)
{
	(void)source;
	(void)path;
	return nothing(why, why_bytes);
}
