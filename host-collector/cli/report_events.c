/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/report_events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/event/event_list.h"
#include "proto/query/described.h"
#include "host-collector/engine/replay.h"
#include "proto/program/output.h"

const char *const report_events_names[] = {"events", "pairs", "top", "dist", "rate", NULL};

bool report_events_is(const char *table)
{
	for (const char *const *name = report_events_names; table && *name; name++) {
		if (!strcmp(table, *name))
			return true;
	}
	return false;
}

static bool of_pairs(const struct report_events_arguments *a)
{
	return a->key || a->detail || a->lower_ns || a->per_key || a->cycle;
}

static bool of_groups(const struct report_events_arguments *a)
{
	return a->by || a->sum || a->value || a->every_ns;
}

bool report_events_given(const struct report_events_arguments *a)
{
	return a->events.n || of_pairs(a) || of_groups(a);
}

/* Says what is wrong. Returns 0 or -errno. */
static int choices_read(const struct report_events_request *q, struct event_choices *choices)
{
	struct expr_error error;
	int err = 0;

	for (size_t i = 0; !err && i < q->events->events.n; i++) {
		const char *text = q->events->events.items[i];

		err = event_choices_add(choices, text, &error);
		if (err && err != -ENOMEM)
			expr_error_print(&error, "vcpuscope report: -e", text, stderr);
	}
	return err;
}

static enum event_list_format list_format(const char *format)
{
	if (!strcmp(format, "json") || !strcmp(format, "jsonl"))
		return EVENT_LIST_JSON;
	return !strcmp(format, "csv") ? EVENT_LIST_CSV : EVENT_LIST_TEXT;
}

static bool guests_missed(void *model)
{
	return model_guests_missed(model);
}

int report_events_read(const struct report_events_request *q, struct model *m)
{
	const char *path = q->recording;
	const struct pipeline_options options = {.model = m};
	struct pipeline *p = pipeline_new(&options);
	struct recording_info info;
	char why[512];
	int err;

	snprintf(why, sizeof(why), "%s: out of memory", path);
	err = p ? replay_until(p, path, guests_missed, m, &info, why, sizeof(why)) : -ENOMEM;
	if (!err && model_guests_missed(m))
		err = -ECANCELED;
	if (err == -ECANCELED)
		;
	else if (err)
		fprintf(stderr, "vcpuscope report: %s\n", why);
	else if (!info.closed)
		fprintf(stderr,
			"vcpuscope report: %s: was not closed; the output covers its complete "
			"entries\n",
			path);
	pipeline_free(p);
	if (!err && narrow_check(q->narrow, m, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope report: %s: %s\n", path, why);
		err = -ENOENT;
	}
	return err;
}

static int list_write(const struct report_events_request *q, const struct event_choices *choices,
		      FILE *out)
{
	const struct event_list_options options = {
		.format = list_format(q->format),
		.top = q->top,
		.narrow = q->narrow,
		.out = out,
	};
	struct model *m = model_new();
	struct event_list *l = m ? event_list_new(m, choices, &options) : NULL;
	int err = l ? report_events_read(q, m) : -ENOMEM;

	if (!err && !event_list_written(l))
		fprintf(stderr, "vcpuscope report: %s: contains none of these events\n",
			q->recording);
	if (!err && event_list_left_out(l))
		fprintf(stderr, "vcpuscope report: %s: %llu more events; --top 0 shows all\n",
			q->recording, (unsigned long long)event_list_left_out(l));
	event_list_free(l);
	model_free(m);
	return err;
}

static bool request_check(const struct report_events_request *q)
{
	const struct report_events_arguments *a = q->events;

	if (!q->events->events.n)
		fprintf(stderr,
			"vcpuscope report: %s needs -e EVENT; `vcpuscope events` lists the "
			"events\n",
			q->what);
	else if (!strcmp(q->format, "html"))
		fprintf(stderr, "vcpuscope report: %s has no --format html\n", q->what);
	else if (strcmp(q->what, "pairs") != 0 && of_pairs(a))
		fprintf(stderr,
			"vcpuscope report: %s: --key, --per-key, --cycle, --lower and --detail are "
			"options of pairs\n",
			q->what);
	else if (!report_groups_is(q->what) && of_groups(a))
		fprintf(stderr,
			"vcpuscope report: %s: --by, --sum, --value and --every are options of "
			"top, dist and rate\n",
			q->what);
	else
		return true;
	return false;
}

static int what_write(const struct report_events_request *q, struct event_choices *choices,
		      FILE *out)
{
	if (!strcmp(q->what, "pairs"))
		return report_pairs_write(q, choices, out);
	if (report_groups_is(q->what))
		return report_groups_write(q, choices, out);
	return list_write(q, choices, out);
}

int report_events_run(const struct report_events_request *q)
{
	struct event_choices choices;
	FILE *out = NULL;
	int err, closed;

	if (!request_check(q))
		return COMMAND_USAGE;
	err = event_choices_init(&choices);
	if (!err)
		err = described_read(q->recording, choices.schemas);
	if (!err)
		err = choices_read(q, &choices);
	if (err) {
		event_choices_fini(&choices);
		return err == -ENOMEM ? COMMAND_TROUBLE : COMMAND_USAGE;
	}
	err = output_open(q->output, &out);
	if (!err) {
		err = what_write(q, &choices, out);
		closed = output_close(out);
		if (closed)
			fprintf(stderr, "vcpuscope report: %s: cannot write: %s\n",
				output_name(q->output), strerror(-closed));
		err = err ? err : closed;
	}
	event_choices_fini(&choices);
	if (err == -EINVAL)
		return COMMAND_USAGE;
	return err ? COMMAND_TROUBLE : COMMAND_OK;
}
