/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/sql/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/sql/result.h"
#include "host-collector/sql/tables.h"

/* Steps of SQLite between two looks at Ctrl-C; the longest text. */
enum { PROGRESS_STEPS = 1000, SQL_TEXT_BYTES = 1 << 20 };

/* Functions that reach beyond the query, should this SQLite have them. */
static const char *const functions_refused[] = {"load_extension", "readfile", "writefile", "edit",
						"fts3_tokenizer"};
/* PRAGMAs that describe and change nothing. */
static const char *const pragmas[] = {"table_info",    "table_xinfo",     "table_list",
				      "function_list", "compile_options", "collation_list"};

static bool is_among(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++) {
		if (word && !sqlite3_stricmp(words[i], word))
			return true;
	}
	return false;
}

static int authorize(void *context, int action, const char *first, const char *second,
		     const char *database, const char *trigger)
{
	(void)context;
	(void)database;
	(void)trigger;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return is_among(functions_refused,
				sizeof(functions_refused) / sizeof(functions_refused[0]), second)
			       ? SQLITE_DENY
			       : SQLITE_OK;
	case SQLITE_PRAGMA:
		return is_among(pragmas, sizeof(pragmas) / sizeof(pragmas[0]), first) ? SQLITE_OK
										      : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

static int progress(void *context)
{
	const struct sql_source *source = context;

	return source->stopped(source->context);
}

/* Returns the errno for an SQLITE_ code, with one line in `why`. */
static int trouble(sqlite3 *db, int rc, char *why, size_t why_bytes)
{
	if (rc == SQLITE_INTERRUPT) {
		snprintf(why, why_bytes, "interrupted");
		return -ECANCELED;
	}
	if (rc == SQLITE_NOMEM) {
		snprintf(why, why_bytes,
			 "the query needs more than %d MiB; select less, by time or by LIMIT",
			 SQL_MEMORY_BYTES >> 20);
		return -ENOMEM;
	}
	if (rc == SQLITE_AUTH)
		snprintf(why, why_bytes, "%s: a query may only read this recording",
			 db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
	else
		snprintf(why, why_bytes, "%s", db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
	return rc == SQLITE_IOERR || rc == SQLITE_FULL ? -EIO : -EINVAL;
}

static int database_open(const char *path, const struct sql_source *source, const char *prefix,
			 sqlite3 **db)
{
	int rc = sqlite3_open_v2(
		path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_PRIVATECACHE,
		NULL);

	if (rc != SQLITE_OK)
		return rc;
	sqlite3_extended_result_codes(*db, 0);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_progress_handler(*db, PROGRESS_STEPS, progress, (void *)source);
	/* What is sorted stays in memory, which is bounded: a query writes no file. */
	sqlite3_hard_heap_limit64(SQL_MEMORY_BYTES);
	rc = sqlite3_exec(*db, "PRAGMA temp_store=MEMORY", NULL, NULL, NULL);
	return rc == SQLITE_OK ? sql_tables_add(*db, source, prefix) : rc;
}

/* Declares the tables, which the authorizer would refuse: a declaration is a CREATE TABLE. */
static int tables_connect(sqlite3 *db)
{
	const char *name;
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && sql_table_declaration(i, &name); i++) {
		sqlite3_stmt *statement = NULL;
		char sql[64];

		snprintf(sql, sizeof(sql), "SELECT 1 FROM %s", name);
		rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
		sqlite3_finalize(statement);
	}
	return rc;
}

static bool is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n;")] == '\0';
}

static int rows_write(sqlite3 *db, sqlite3_stmt *statement, const struct sql_source *source,
		      enum sql_format format, FILE *out, char *why, size_t why_bytes)
{
	struct sql_result *result = sql_result_new(statement, format, out);
	int rc = SQLITE_DONE, err = result ? 0 : -ENOMEM;

	while (!err && (rc = sqlite3_step(statement)) == SQLITE_ROW)
		err = sql_result_row(result);
	if (!err && rc == SQLITE_DONE && source->stopped(source->context))
		rc = SQLITE_INTERRUPT;
	if (!err && rc != SQLITE_DONE)
		err = trouble(db, rc, why, why_bytes);
	else if (err)
		snprintf(why, why_bytes, "%s", strerror(-err));
	if (result && !err) {
		err = sql_result_end(result);
		if (err)
			snprintf(why, why_bytes, "cannot write: %s", strerror(-err));
	}
	sql_result_free(result);
	return err;
}

int sql_query_run(const struct sql_source *source, const char *sql, enum sql_format format,
		  FILE *out, char *why, size_t why_bytes)
{
	sqlite3_stmt *statement = NULL;
	const char *rest = "";
	sqlite3 *db = NULL;
	int err = 0, rc = database_open(":memory:", source, "", &db);

	if (rc == SQLITE_OK) {
		sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
		sqlite3_limit(db, SQLITE_LIMIT_LENGTH, SQL_TEXT_BYTES);
		rc = tables_connect(db);
	}
	if (rc == SQLITE_OK)
		rc = sqlite3_set_authorizer(db, authorize, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, sql, -1, &statement, &rest);
	if (rc != SQLITE_OK) {
		err = trouble(db, rc, why, why_bytes);
	} else if (!statement || !is_blank(rest)) {
		snprintf(why, why_bytes, "expected one SELECT statement");
		err = -EINVAL;
	} else {
		err = rows_write(db, statement, source, format, out, why, why_bytes);
	}
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return err;
}

int sql_schema_write(FILE *out)
{
	const char *name, *text;

	for (size_t i = 0; (text = sql_table_declaration(i, &name)); i++) {
		for (; *text; text++) {
			fputc(*text, out);
			if (*text == '(' || *text == ',')
				fputs("\n  ", out);
		}
		fputs(";\n", out);
	}
	return 0;
}

/* ---- a database file ---- */

static int exec(sqlite3 *db, const char *format, const char *name)
{
	char sql[512];

	snprintf(sql, sizeof(sql), format, name, name);
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int tables_copy(sqlite3 *db)
{
	const char *name, *text;
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && (text = sql_table_declaration(i, &name)); i++) {
		if (sql_table_is_function(i))
			continue;
		rc = sqlite3_exec(db, text, NULL, NULL, NULL);
		if (rc == SQLITE_OK)
			rc = exec(db, "INSERT INTO main.%s SELECT * FROM recorded_%s", name);
	}
	if (rc == SQLITE_OK)
		rc = exec(db,
			  "CREATE INDEX events_t ON events(t_ns);"
			  "CREATE INDEX events_event ON events(event, t_ns);"
			  "CREATE INDEX spans_begin ON spans(begin_ns);%.0s%.0s",
			  "");
	return rc;
}

int sql_database_write(const struct sql_source *source, const char *path, char *why,
		       size_t why_bytes)
{
	sqlite3 *db = NULL;
	int err, rc = database_open(path, source, "recorded_", &db);

	/* A file that is not finished is removed: nothing has to survive a crash. */
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN",
				  NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = tables_copy(db);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	if (rc == SQLITE_OK && source->stopped(source->context))
		rc = SQLITE_INTERRUPT;
	err = rc == SQLITE_OK ? 0 : trouble(db, rc, why, why_bytes);
	sqlite3_close(db);
	return err;
}
