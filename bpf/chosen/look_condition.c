// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/chosen/look_condition.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/chosen/event_filter.h"
#include "proto/query/event_schema.h"

/* The common fields that a tick has. */
static const struct {
	uint16_t index;
	uint8_t type; /* enum expr_type */
} common_fields[] = {
	{EVENT_COMMON_CPU, EXPR_UNSIGNED},
	{EVENT_COMMON_TID, EXPR_SIGNED},
	{EVENT_COMMON_PID, EXPR_SIGNED},
	{EVENT_COMMON_COMM, EXPR_TEXT},
};
enum { COMMON_FIELDS = sizeof(common_fields) / sizeof(common_fields[0]) };

/* Number i of the tracepoints that the capture of `side` takes; NULL behind the last. */
static const struct event_tracepoint *tracepoint_of(enum event_side side, size_t i)
{
	const uint8_t users = side == EVENT_GUEST ? BY_GUEST : BY_ROW | BY_HOST;
	size_t n;
	const struct event_tracepoint *rows = event_tracepoints(&n);

	for (size_t k = 0; k < n; k++) {
		if (rows[k].users & users && !i--)
			return &rows[k];
	}
	return NULL;
}

static bool field_find(const void *context, const char *name, uint16_t *index, enum expr_type *type)
{
	const enum event_side side = *(const enum event_side *)context;
	const struct event_tracepoint *t;

	for (size_t i = 0; i < COMMON_FIELDS; i++) {
		if (strcmp(event_common_name(common_fields[i].index), name) != 0)
			continue;
		*index = common_fields[i].index;
		*type = (enum expr_type)common_fields[i].type;
		return true;
	}
	for (uint16_t i = 0; (t = tracepoint_of(side, i)); i++) {
		if (strcmp(t->name, name) != 0)
			continue;
		*index = i;
		*type = EXPR_UNSIGNED;
		return true;
	}
	return false;
}

static const char *field_name(const void *context, size_t i)
{
	const struct event_tracepoint *t;

	if (i < COMMON_FIELDS)
		return event_common_name(common_fields[i].index);
	t = tracepoint_of(*(const enum event_side *)context, i - COMMON_FIELDS);
	return t ? t->name : NULL;
}

/* An event of the other side deserves a better message than an unknown name. */
static void error_explain(const char *text, enum event_side side, struct expr_error *error)
{
	const enum event_side other = side == EVENT_HOST ? EVENT_GUEST : EVENT_HOST;
	char name[EXPR_NAME_BYTES];
	enum expr_type type;
	uint16_t index;
	size_t len = 0;

	if (error->at >= strlen(text))
		return;
	while (len < sizeof(name) - 1 &&
	       (isalnum((unsigned char)text[error->at + len]) || text[error->at + len] == '_'))
		len++;
	snprintf(name, sizeof(name), "%.*s", (int)len, text + error->at);
	if (!field_find(&side, name, &index, &type) && field_find(&other, name, &index, &type))
		expr_fail(error, -EINVAL, error->at, "'%s' is an event of the %s only", name,
			  other == EVENT_HOST ? "host" : "guest");
}

/* Gives each tracepoint of the expression the next free count. */
static int counts_choose(const struct expr *e, enum event_side side, struct source_field *fields,
			 struct capture_look *out, struct expr_error *error)
{
	for (size_t i = 0; i < e->n; i++) {
		const struct expr_node *node = &e->nodes[i];
		const struct event_tracepoint *t;

		if (node->op != EXPR_FIELD || node->index >= EVENT_COMMON_BASE ||
		    fields[node->index].bytes)
			continue;
		if (out->n_counts == VS_LOOK_COUNTS)
			return expr_fail(error, -E2BIG, node->at,
					 "a condition counts at most %d different events",
					 VS_LOOK_COUNTS);
		t = tracepoint_of(side, node->index);
		snprintf(out->counts[out->n_counts].system, sizeof(out->counts[0].system), "%s",
			 t->system);
		snprintf(out->counts[out->n_counts].name, sizeof(out->counts[0].name), "%s",
			 t->name);
		fields[node->index] = (struct source_field){
			.type = USER_UNSIGNED,
			.bytes = 8,
			.first = {.bytes = 8,
				  .from = VS_FROM_COUNT,
				  .number = (vs_s64)out->n_counts},
		};
		out->n_counts++;
	}
	return 0;
}

static int texts_refuse(const struct expr *e, struct expr_error *error)
{
	for (size_t i = 0; i < e->n; i++) {
		if (e->nodes[i].op == EXPR_FIELD && e->nodes[i].type == EXPR_TEXT)
			return expr_fail(error, -EPERM, e->nodes[i].at,
					 "a text, which the owner does not allow");
	}
	return 0;
}

int look_condition_compile(const char *text, enum event_side side, bool no_texts,
			   struct capture_look *out, struct expr_error *error)
{
	const struct expr_scope scope = {field_find, field_name, &side};
	struct source_field *fields = calloc(EVENT_COMMON_BASE, sizeof(*fields));
	struct capture_event *tests = calloc(1, sizeof(*tests));
	struct expr *e = calloc(1, sizeof(*e));
	int err = fields && tests && e ? 0 : -ENOMEM;

	*error = (struct expr_error){0};
	out->n_counts = 0;
	if (!err)
		err = expr_parse(text, strlen(text), &scope, e, error);
	if (err == -EINVAL)
		error_explain(text, side, error);
	if (!err && no_texts)
		err = texts_refuse(e, error);
	if (!err)
		err = counts_choose(e, side, fields, out, error);
	if (!err)
		err = event_filter_compile(e, fields, tests, error);
	if (!err) {
		out->n_tests = tests->n_tests;
		out->first_test = tests->first_test;
		memcpy(out->tests, tests->tests, sizeof(out->tests));
	}
	free(e);
	free(tests);
	free(fields);
	return err;
}
