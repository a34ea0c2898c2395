/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope report RUN.vcs top|dist|rate`: events counted by the value of an expression. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/event/event_groups.h"
#include "host-collector/cli/report_events.h"
#include "host-collector/tables/table.h"

/* One of the three tables. The columns `event` and `key` come first in each. */
struct kind {
	const char *name;
	const struct table_column *columns;
	size_t n_columns;
	size_t sort_by;
	bool value, every; /* needs a value; needs intervals */
};

#define COLUMN_EVENT                                                                               \
	{                                                                                          \
		"event", "event", TABLE_TEXT                                                       \
	}
#define COLUMN_KEY                                                                                 \
	{                                                                                          \
		"key", "key", TABLE_TEXT                                                           \
	}
#define COLUMN_COUNT                                                                               \
	{                                                                                          \
		"count", "count", TABLE_COUNT                                                      \
	}
#define QUANTILES                                                                                  \
	{"min", "min", TABLE_COUNT}, {"p50", "p50", TABLE_COUNT}, {"p95", "p95", TABLE_COUNT},     \
		{"p99", "p99", TABLE_COUNT}, {"p99_9", "p99.9", TABLE_COUNT},                      \
	{                                                                                          \
		"max", "max", TABLE_COUNT                                                          \
	}

static const struct table_column top_columns[] = {
	COLUMN_EVENT, COLUMN_KEY, COLUMN_COUNT, {"percent", "%", TABLE_PERCENT}};
static const struct table_column sum_columns[] = {
	COLUMN_EVENT,
	COLUMN_KEY,
	COLUMN_COUNT,
	{"percent", "%", TABLE_PERCENT}, /* of the sum */
	{"sum", "sum", TABLE_COUNT},
	{"max", "max", TABLE_COUNT},
};
static const struct table_column dist_columns[] = {
	COLUMN_EVENT, COLUMN_KEY, COLUMN_COUNT, {"sum", "sum", TABLE_COUNT}, QUANTILES};
/* The columns of the table `rate`: statistics of the number of events in an interval. */
static const struct table_column rate_columns[] = {
	COLUMN_EVENT, COLUMN_KEY,
	COLUMN_COUNT, {"per_second", "per second", TABLE_COUNT},
	QUANTILES,    {"busiest", "busiest at", TABLE_TIME},
};

#define COLUMNS(array) (array), sizeof(array) / sizeof((array)[0])

static const struct kind kinds[] = {
	{"top", COLUMNS(top_columns), 2, false, false},
	{"top", COLUMNS(sum_columns), 4, true, false},
	{"dist", COLUMNS(dist_columns), 2, true, false},
	{"rate", COLUMNS(rate_columns), 2, false, true},
};

struct groups_output {
	const struct report_events_request *request;
	const struct kind *kind;
	struct model *model;
	const struct event_choices *choices;
	struct event_groups *groups;
	int64_t every_ns;
};

bool report_groups_is(const char *table)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(table, kinds[i].name))
			return true;
	}
	return false;
}

static void quantiles(struct table *t, const struct histogram *h)
{
	static const double shares[] = {0.5, 0.95, 0.99, 0.999};

	table_count(t, h->min_ns);
	for (size_t i = 0; i < 4; i++)
		table_count(t, histogram_quantile(h, shares[i]));
	table_count(t, h->max_ns);
}

static void cells_rate(const struct groups_output *o, struct table *t, const struct event_group *g)
{
	const struct host_ns begin = model_begin(o->model);
	const int64_t length = model_now(o->model).ns - begin.ns;

	table_count(t, length > 0 ? (uint64_t)((double)g->count * 1e9 / (double)length + 0.5) : 0);
	quantiles(t, &g->values);
	table_time(t, begin.ns + g->busiest * o->every_ns);
}

/* People know which event it is if there is only one. */
static bool shows_event(const struct groups_output *o)
{
	return o->choices->n > 1 || strcmp(o->request->format, "text") != 0;
}

static void row_add(const struct groups_output *o, struct table *t, const struct event_group *g,
		    uint64_t whole)
{
	const bool sum = o->kind->columns == sum_columns;
	const double part = (double)(sum ? g->sum : g->count);
	char key[48], named[192];

	table_row(t);
	if (shows_event(o))
		table_text(t, o->choices->items[g->choice].name);
	pair_key_text(&g->key, key, sizeof(key));
	snprintf(named, sizeof(named), "%s%s%s",
		 g->key.of_vm && model_vms(o->model, NULL, 0) > 1
			 ? model_vm_name(o->model, g->key.vm)
			 : "",
		 g->key.of_vm && model_vms(o->model, NULL, 0) > 1 ? "/" : "",
		 g->key.type == EXPR_NONE ? "(others)" : key);
	table_text(t, named);
	table_count(t, g->count);
	if (o->kind->every) {
		cells_rate(o, t, g);
		return;
	}
	if (o->kind->columns == dist_columns) {
		table_count(t, g->sum);
		quantiles(t, &g->values);
		return;
	}
	table_percent(t, whole ? 100 * part / (double)whole : 0);
	if (sum) {
		table_count(t, g->sum);
		table_count(t, g->values.max_ns);
	}
}

static uint64_t whole_of(const struct groups_output *o)
{
	const struct event_group *g;
	uint64_t whole = 0;

	for (size_t i = 0; (g = event_groups_get(o->groups, i)); i++)
		whole += o->kind->columns == sum_columns ? g->sum : g->count;
	return whole;
}

static int table_make(const struct groups_output *o, FILE *out)
{
	const size_t hidden = !shows_event(o);
	struct table *t =
		table_new(o->kind->name, o->kind->columns + hidden, o->kind->n_columns - hidden);
	const char *format = o->request->format;
	const uint64_t whole = whole_of(o);
	const struct event_group *g;
	int err = -ENOMEM;

	if (!t)
		return err;
	for (size_t i = 0; (g = event_groups_get(o->groups, i)); i++)
		row_add(o, t, g, whole);
	table_origin(t, model_begin(o->model).ns);
	table_span(t, model_begin(o->model).ns, model_now(o->model).ns);
	table_sort(t, o->kind->sort_by - hidden, o->request->top);
	if (!strcmp(format, "json"))
		err = tables_write_json(&t, 1, false, out);
	else if (!strcmp(format, "csv"))
		err = tables_write_csv(&t, 1, out);
	else
		err = table_write_text(t, out);
	table_free(t);
	return err;
}

static void limits_say(const struct groups_output *o)
{
	const struct event_groups_limits l = event_groups_limits_get(o->groups);
	const char *what = o->kind->name;

	if (l.without_key)
		fprintf(stderr, "vcpuscope report: %s: %" PRIu64 " events have no value of --by\n",
			what, l.without_key);
	if (l.without_value)
		fprintf(stderr,
			"vcpuscope report: %s: %" PRIu64 " events have no value; left out\n", what,
			l.without_value);
	if (l.negative)
		fprintf(stderr, "vcpuscope report: %s: %" PRIu64 " values are negative; left out\n",
			what, l.negative);
	if (l.keys_joined)
		fprintf(stderr,
			"vcpuscope report: %s: there are more than %d keys; the row (others) has "
			"%" PRIu64 " events of the rest\n",
			what, EVENT_GROUPS_ROWS_MAX, l.keys_joined);
}

/* Says what is wrong. Returns the table that the options ask for, or NULL. */
static const struct kind *kind_find(const struct report_events_request *q)
{
	const struct report_events_arguments *a = q->events;
	const bool top = !strcmp(q->what, "top"), dist = !strcmp(q->what, "dist");

	if (a->sum && !top)
		fprintf(stderr, "vcpuscope report: %s: --sum is an option of top\n", q->what);
	else if (a->value && !dist)
		fprintf(stderr, "vcpuscope report: %s: --value is an option of dist\n", q->what);
	else if (dist && !a->value)
		fputs("vcpuscope report: dist needs --value EXPR: the value to distribute\n",
		      stderr);
	else if (a->every_ns && (top || dist))
		fprintf(stderr, "vcpuscope report: %s: --every is an option of rate\n", q->what);
	else if (top)
		return &kinds[a->sum ? 1 : 0];
	else
		return &kinds[dist ? 2 : 3];
	return NULL;
}

/* Says what is wrong. */
static int expressions_read(const struct report_events_arguments *a, struct event_choices *choices)
{
	const char *value = a->sum ? a->sum : a->value;
	struct expr_error error;
	/* Without --by there is one row for each event. */
	int err = event_choices_key(choices, a->by ? a->by : "0", &error);

	if (err) {
		expr_error_print(&error, "vcpuscope report: --by", a->by, stderr);
		return err;
	}
	err = value ? event_choices_value(choices, value, &error) : 0;
	if (err)
		expr_error_print(&error,
				 a->sum ? "vcpuscope report: --sum" : "vcpuscope report: --value",
				 value, stderr);
	return err;
}

int report_groups_write(const struct report_events_request *q, struct event_choices *choices,
			FILE *out)
{
	const struct report_events_arguments *a = q->events;
	struct groups_output o = {.request = q, .kind = kind_find(q), .choices = choices};
	struct event_groups_options options;
	int err;

	if (!o.kind)
		return -EINVAL;
	err = expressions_read(a, choices);
	if (err)
		return err;
	o.every_ns = a->every_ns ? (int64_t)a->every_ns : 10000000;
	options = (struct event_groups_options){
		.values = o.kind->value,
		.every_ns = o.kind->every ? o.every_ns : 0,
		.narrow = q->narrow,
	};
	o.model = model_new();
	o.groups = o.model ? event_groups_new(o.model, choices, &options) : NULL;
	err = o.groups ? report_events_read(q, o.model) : -ENOMEM;
	if (!err)
		err = event_groups_finish(o.groups);
	if (!err)
		err = table_make(&o, out);
	if (!err)
		limits_say(&o);
	if (err == -ENOMEM)
		fputs("vcpuscope report: out of memory\n", stderr);
	event_groups_free(o.groups);
	model_free(o.model);
	return err;
}
