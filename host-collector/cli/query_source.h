/* SPDX-License-Identifier: GPL-2.0-only */
/* Provides a recording as the source of SQL tables. Ctrl-C ends its reading. */
#ifndef CLI_QUERY_SOURCE_H
#define CLI_QUERY_SOURCE_H

#include "host-collector/sql/rows.h"

struct query_source {
	struct sql_source sql;
	const char *command;
	struct report *report; /* NULL until it was read */
	bool failed;           /* it could not be read */
};

/* Catches SIGINT and SIGTERM from now on: they end the reading. All texts and `narrow` are
 * borrowed; narrow: NULL for all rows. */
void query_source_init(struct query_source *q, const char *command, const char *recording,
		       const struct narrow *narrow);
void query_source_fini(struct query_source *q);

#endif
