/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads rows from a recording on a thread of its own. At most RELAY_CHUNKS chunks of rows are held:
 * the thread waits until they are taken.
 */
#ifndef SQL_SCAN_H
#define SQL_SCAN_H

#include "host-collector/sql/rows.h"

struct sql_scan;

/* Starts to read. Copies `wanted`; `source` is borrowed. Returns 0 or -errno. */
int sql_scan_open(const struct sql_source *source, enum sql_scanned what,
		  const struct sql_wanted *wanted, struct sql_scan **out);
/* Sets *row to the next row, which is valid until the next call. Returns 1, 0 after the last, or
 * -errno with one line in sql_scan_why(); -ECANCELED if the source was stopped. */
int sql_scan_next(struct sql_scan *s, const struct sql_row **row);
const char *sql_scan_why(const struct sql_scan *s);
/* Ends the thread, also before the last row. NULL is allowed. */
void sql_scan_close(struct sql_scan *s);

#endif
