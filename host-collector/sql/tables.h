/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The recording as virtual tables of SQLite: events, spans, incidents, pairs, recording. Conditions
 * on time, VM, vCPU and name of an event are passed down to the reader. SQLite checks them again.
 */
#ifndef SQL_TABLES_H
#define SQL_TABLES_H

#include <sqlite3.h>

#include "host-collector/sql/rows.h"

/* Adds the tables to a database. `source` is borrowed until the database is closed. prefix: stands
 * before each table's name. Returns an SQLITE_ code. */
int sql_tables_add(sqlite3 *db, const struct sql_source *source, const char *prefix);
/* Returns the declaration of table number `index`, "CREATE TABLE events(...)", and its name; NULL
 * after the last. Static. */
const char *sql_table_declaration(size_t index, const char **name);

/* Returns true if table number `index` has arguments, so that it cannot be copied. */
bool sql_table_is_function(size_t index);

#endif
