/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/sql/tables.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/sql/scan.h"

enum { CURSORS_MAX = 16, IDX_BYTES = 64, DECLARATION_BYTES = 1024 };

/* What a condition on a column selects. */
enum pushed {
	PUSH_NONE,
	PUSH_TIME,
	PUSH_BEGIN,
	PUSH_END,
	PUSH_VM,
	PUSH_VCPU,
	PUSH_EVENT,
	/* Arguments: SQLite need not check them again. */
	PUSH_FROM,
	PUSH_TO,
	PUSH_KEY,
};

struct kind {
	const char *name, *declaration;
	bool scanned;
	enum sql_scanned scan;
	bool (*row)(const struct report *r, size_t index, struct sql_row *row); /* if not scanned */
	unsigned char pushed[SQL_COLUMNS_MAX];
	double cost;
};

#define COLUMN(name, type) "," #name " " #type
/* The first column has no comma before it. */
#define DECLARATION(table, COLUMNS) "CREATE TABLE " table "(" COLUMNS(COLUMN) ")"

static const struct kind kinds[] = {
	{"events",
	 DECLARATION("events", SQL_EVENTS),
	 true,
	 SQL_SCAN_EVENTS,
	 NULL,
	 {[EVENTS_t_ns] = PUSH_TIME,
	  [EVENTS_vm] = PUSH_VM,
	  [EVENTS_vcpu] = PUSH_VCPU,
	  [EVENTS_event] = PUSH_EVENT},
	 1e7},
	{"spans",
	 DECLARATION("spans", SQL_SPANS),
	 true,
	 SQL_SCAN_SPANS,
	 NULL,
	 {[SPANS_begin_ns] = PUSH_BEGIN,
	  [SPANS_end_ns] = PUSH_END,
	  [SPANS_vm] = PUSH_VM,
	  [SPANS_vcpu] = PUSH_VCPU},
	 1e7},
	{"incidents",
	 DECLARATION("incidents", SQL_INCIDENTS),
	 false,
	 0,
	 sql_incidents_row,
	 {0},
	 100},
	{"pairs",
	 DECLARATION("pairs", SQL_PAIRS),
	 true,
	 SQL_SCAN_PAIRS,
	 NULL,
	 {[PAIRS_a] = PUSH_FROM, [PAIRS_b] = PUSH_TO, [PAIRS_k] = PUSH_KEY},
	 1e7},
	{"recording", DECLARATION("recording", SQL_RECORDING), false, 0, sql_recording_row, {0}, 1},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* The data that all tables of a module share. */
struct module {
	const struct kind *kind;
	const struct sql_source *source;
	char declaration[DECLARATION_BYTES];
};

struct vtab {
	sqlite3_vtab base; /* must be first */
	const struct module *module;
	unsigned n_cursors;
};

struct cursor {
	sqlite3_vtab_cursor base; /* must be first */
	struct sql_scan *scan;
	const struct sql_row *row; /* NULL: past the last */
	sqlite3_int64 number;
	struct sql_row own; /* if the kind is not scanned */
};

/* "CREATE TABLE events(,a ..." without that comma. */
static void declaration_make(const struct kind *k, char *out, size_t out_bytes)
{
	const char *comma = strchr(k->declaration, ',');

	snprintf(out, out_bytes, "%.*s%s", (int)(comma - k->declaration), k->declaration,
		 comma + 1);
}

bool sql_table_is_function(size_t index)
{
	return index < KINDS && kinds[index].scanned && kinds[index].scan == SQL_SCAN_PAIRS;
}

const char *sql_table_declaration(size_t index, const char **name)
{
	static char text[KINDS][DECLARATION_BYTES];

	if (index >= KINDS)
		return NULL;
	declaration_make(&kinds[index], text[index], sizeof(text[index]));
	*name = kinds[index].name;
	return text[index];
}

static int on_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
		      char **error)
{
	struct module *module = aux;
	struct vtab *t;
	int rc = sqlite3_declare_vtab(db, module->declaration);

	(void)argc;
	(void)argv;
	if (rc != SQLITE_OK) {
		*error = sqlite3_mprintf("%s", sqlite3_errmsg(db));
		return rc;
	}
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	t = calloc(1, sizeof(*t));
	if (!t)
		return SQLITE_NOMEM;
	t->module = module;
	*out = &t->base;
	return SQLITE_OK;
}

static int on_disconnect(sqlite3_vtab *base)
{
	free(base);
	return SQLITE_OK;
}

/* ---- conditions ---- */

static char operator_of(unsigned char op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return '=';
	case SQLITE_INDEX_CONSTRAINT_GT:
	case SQLITE_INDEX_CONSTRAINT_GE:
		return '>';
	case SQLITE_INDEX_CONSTRAINT_LT:
	case SQLITE_INDEX_CONSTRAINT_LE:
		return '<';
	default:
		return 0;
	}
}

/* Writes two characters for each condition that the reader gets: the column, the operator. */
static int on_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct kind *k = ((const struct vtab *)base)->module->kind;
	char text[IDX_BYTES + 1];
	double cost = k->cost;
	int n = 0;

	for (int i = 0; i < info->nConstraint && n + 2 <= IDX_BYTES; i++) {
		const struct sqlite3_index_constraint *c = &info->aConstraint[i];
		const char op = operator_of(c->op);
		enum pushed pushed = c->iColumn < 0 || c->iColumn >= SQL_COLUMNS_MAX
					     ? PUSH_NONE
					     : (enum pushed)k->pushed[c->iColumn];

		if (!c->usable || !op || pushed == PUSH_NONE || (op != '=' && pushed >= PUSH_VM))
			continue;
		text[n++] = (char)('a' + c->iColumn);
		text[n++] = op;
		info->aConstraintUsage[i].argvIndex = n / 2;
		info->aConstraintUsage[i].omit = pushed >= PUSH_FROM;
		cost /= pushed == PUSH_EVENT ? 10 : op == '=' ? 4 : 2;
	}
	text[n] = '\0';
	info->idxStr = sqlite3_mprintf("%s", text);
	info->needToFreeIdxStr = 1;
	info->estimatedCost = cost;
	info->estimatedRows = (sqlite3_int64)cost;
	if (k->scan == SQL_SCAN_EVENTS && k->scanned && info->nOrderBy == 1 &&
	    info->aOrderBy[0].iColumn == EVENTS_t_ns && !info->aOrderBy[0].desc)
		info->orderByConsumed = 1;
	return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

/* A bound of the time: the nanosecond below or above a number with a fraction. */
static int64_t bound_of(sqlite3_value *value, bool upper)
{
	double d;

	if (sqlite3_value_type(value) == SQLITE_INTEGER)
		return sqlite3_value_int64(value);
	d = sqlite3_value_double(value);
	if (d >= 9e18)
		return INT64_MAX - 1;
	if (d <= -9e18)
		return -INT64_MAX;
	return (int64_t)d + (upper ? 1 : -1);
}

static bool is_number(sqlite3_value *value)
{
	int type = sqlite3_value_type(value);

	return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static void from_set(struct narrow *n, int64_t ns)
{
	if (ns > n->from.ns)
		n->from.ns = ns;
}

/* Includes `ns`. */
static void until_set(struct narrow *n, int64_t ns)
{
	if (ns < INT64_MAX && ns + 1 < n->until.ns)
		n->until.ns = ns + 1;
}

static void time_apply(struct narrow *n, enum pushed pushed, char op, sqlite3_value *value)
{
	if (!is_number(value))
		return;
	n->cut = true;
	/* A span that begins late enough also ends so; the other way round for its end. */
	if (op != '<' && pushed != PUSH_END)
		from_set(n, bound_of(value, false));
	if (op != '<' && pushed == PUSH_END)
		from_set(n, bound_of(value, false) - 1); /* [begin, end) that ends there */
	if (op != '>')
		until_set(n, bound_of(value, true));
}

static void text_copy(sqlite3_value *value, char *out, size_t out_bytes)
{
	const unsigned char *text = sqlite3_value_text(value);

	snprintf(out, out_bytes, "%s", text ? (const char *)text : "");
}

/* Conditions that cannot be passed down select nothing here; SQLite applies them. */
static void wanted_make(const struct kind *k, const char *idx, sqlite3_value **argv, int argc,
			struct sql_wanted *w)
{
	*w = (struct sql_wanted){.rows = NARROW_NOTHING};
	w->rows.from.ns = INT64_MIN;
	w->rows.until.ns = INT64_MAX;
	for (int i = 0; i < argc && idx[2 * i]; i++) {
		enum pushed pushed = (enum pushed)k->pushed[idx[2 * i] - 'a'];
		bool text = sqlite3_value_type(argv[i]) == SQLITE_TEXT;

		if (pushed == PUSH_VM && text && sqlite3_value_bytes(argv[i]) < 200) {
			text_copy(argv[i], w->vm, sizeof(w->vm));
			w->rows.vm = w->vm;
		} else if (pushed == PUSH_EVENT && text && sqlite3_value_bytes(argv[i]) < 200) {
			text_copy(argv[i], w->event, sizeof(w->event));
		} else if (pushed == PUSH_FROM && text) {
			text_copy(argv[i], w->from, sizeof(w->from));
		} else if (pushed == PUSH_TO && text) {
			text_copy(argv[i], w->to, sizeof(w->to));
		} else if (pushed == PUSH_KEY && text) {
			text_copy(argv[i], w->key, sizeof(w->key));
		} else if (pushed == PUSH_VCPU && sqlite3_value_type(argv[i]) == SQLITE_INTEGER &&
			   sqlite3_value_int64(argv[i]) >= 0) {
			w->rows.vcpu = sqlite3_value_int64(argv[i]);
		} else if (pushed == PUSH_TIME || pushed == PUSH_BEGIN || pushed == PUSH_END) {
			time_apply(&w->rows, pushed, idx[2 * i + 1], argv[i]);
		}
	}
}

/* ---- cursors ---- */

static int on_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	struct vtab *t = (struct vtab *)base;
	struct cursor *c;

	if (t->n_cursors == CURSORS_MAX) {
		base->zErrMsg = sqlite3_mprintf("the query reads the recording more than %d times "
						"at once",
						CURSORS_MAX);
		return SQLITE_ERROR;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return SQLITE_NOMEM;
	t->n_cursors++;
	*out = &c->base;
	return SQLITE_OK;
}

static int on_close(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	((struct vtab *)base->pVtab)->n_cursors--;
	sql_scan_close(c->scan);
	free(c);
	return SQLITE_OK;
}

static int report_row(struct cursor *c)
{
	const struct module *module = ((const struct vtab *)c->base.pVtab)->module;
	const struct report *r = module->source->report(module->source->context);

	if (!r)
		return SQLITE_ERROR;
	c->row = module->kind->row(r, (size_t)c->number, &c->own) ? &c->own : NULL;
	return SQLITE_OK;
}

static int scan_row(struct cursor *c)
{
	const struct module *module = ((const struct vtab *)c->base.pVtab)->module;
	int got = sql_scan_next(c->scan, &c->row);

	if (module->source->stopped(module->source->context))
		return SQLITE_INTERRUPT;
	if (got > 0)
		return SQLITE_OK;
	c->row = NULL;
	if (!got)
		return SQLITE_OK;
	c->base.pVtab->zErrMsg = sqlite3_mprintf("%s", sql_scan_why(c->scan));
	return SQLITE_ERROR;
}

static int on_filter(sqlite3_vtab_cursor *base, int number, const char *idx, int argc,
		     sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	const struct module *module = ((const struct vtab *)base->pVtab)->module;
	struct sql_wanted wanted;
	int err;

	(void)number;
	sql_scan_close(c->scan);
	c->scan = NULL;
	c->row = NULL;
	c->number = 0;
	if (!module->kind->scanned)
		return report_row(c);
	wanted_make(module->kind, idx ? idx : "", argv, argc, &wanted);
	err = sql_scan_open(module->source, module->kind->scan, &wanted, &c->scan);
	if (err)
		return err == -ENOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
	return scan_row(c);
}

static int on_next(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	c->number++;
	return c->scan ? scan_row(c) : report_row(c);
}

static int on_eof(sqlite3_vtab_cursor *base)
{
	return ((const struct cursor *)base)->row == NULL;
}

static int on_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	const struct sql_row *row = ((const struct cursor *)base)->row;

	if (column < 0 || column >= SQL_COLUMNS_MAX || !(row->known >> column & 1))
		sqlite3_result_null(context);
	else if (row->texts >> column & 1)
		sqlite3_result_text(context, row->text + row->cells[column].text, -1,
				    SQLITE_TRANSIENT);
	else
		sqlite3_result_int64(context, row->cells[column].number);
	return SQLITE_OK;
}

static int on_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	*out = ((const struct cursor *)base)->number;
	return SQLITE_OK;
}

/* Without xCreate: the tables exist without CREATE VIRTUAL TABLE. */
static const sqlite3_module methods = {
	.xConnect = on_connect,
	.xBestIndex = on_best_index,
	.xDisconnect = on_disconnect,
	.xDestroy = on_disconnect,
	.xOpen = on_open,
	.xClose = on_close,
	.xFilter = on_filter,
	.xNext = on_next,
	.xEof = on_eof,
	.xColumn = on_column,
	.xRowid = on_rowid,
};

int sql_tables_add(sqlite3 *db, const struct sql_source *source, const char *prefix)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; i < KINDS && rc == SQLITE_OK; i++) {
		struct module *module = calloc(1, sizeof(*module));
		char name[64];

		if (!module)
			return SQLITE_NOMEM;
		module->kind = &kinds[i];
		module->source = source;
		declaration_make(&kinds[i], module->declaration, sizeof(module->declaration));
		snprintf(name, sizeof(name), "%s%s", prefix, kinds[i].name);
		rc = sqlite3_create_module_v2(db, name, &methods, module, free);
	}
	return rc;
}
