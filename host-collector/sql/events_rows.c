/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/sql/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/event/event_list.h"
#include "proto/query/described.h"

struct sql_events {
	struct event_choices choices;
	struct event_reader *reader;
	const struct sql_source *source;
	const struct sql_wanted *wanted;
	sql_row_take *take;
	void *context;
	struct sql_row row;
	FILE *fields; /* writes to fields_text */
	char fields_text[1024];
};

/* {"exit_reason":48,"guest_rip":"0xffffffff81000000"}, as `report events --format json`. Returns
 * "{}" if they need more than the buffer. */
static const char *fields_text(struct sql_events *x, struct event_row *r)
{
	rewind(x->fields);
	event_json_fields(r, x->fields);
	fputc('\0', x->fields);
	if (fflush(x->fields) || ftell(x->fields) >= (long)sizeof(x->fields_text)) {
		clearerr(x->fields);
		return "{}";
	}
	return x->fields_text;
}

static void on_row(void *context, struct event_row *r)
{
	struct sql_events *x = context;
	struct sql_row *row = &x->row;
	const int32_t tid = event_row_task(r);
	char text[256];

	if (x->wanted->rows.cut && r->t.ns >= x->wanted->rows.until.ns) {
		x->take(x->context, NULL); /* events come in the order of time */
		return;
	}
	if (!event_row_selected(r, &x->wanted->rows) || !event_row_selected(r, x->source->narrow))
		return;
	sql_row_clear(row);
	sql_row_number(row, EVENTS_t_ns, r->t.ns);
	if (r->err_ns != UINT32_MAX)
		sql_row_number(row, EVENTS_error_ns, r->err_ns);
	sql_row_text(row, EVENTS_side, r->source == VS_SOURCE_HOST ? "host" : "guest");
	snprintf(text, sizeof(text), "%s:%s", r->choice->schema->system, r->choice->schema->name);
	sql_row_text(row, EVENTS_event, text);
	sql_row_number(row, EVENTS_cpu, r->event->cpu);
	event_row_vcpu(r);
	if (r->vm_known)
		sql_row_text(row, EVENTS_vm, model_vm_name(event_reader_model(r->reader), r->vm));
	if (r->vcpu_known)
		sql_row_number(row, EVENTS_vcpu, r->vcpu);
	if (tid >= 0) {
		sql_row_number(row, EVENTS_tid, tid);
		sql_row_text(row, EVENTS_comm, event_row_task_name(r, tid));
	}
	sql_row_text(row, EVENTS_fields, fields_text(x, r));
	x->take(x->context, row);
}

/* A name without a side means both. Returns 0, -ENOENT or -ENOMEM. */
static int choose(struct event_choices *choices, const char *event)
{
	static const char *const sides[] = {"host", "guest"};
	struct expr_error error;
	char name[300];
	int err = -ENOENT, one;

	if (!*event)
		return event_choices_add(choices, "*:*", &error);
	/* Not a pattern, a filter or a list: only what a column can contain. */
	if (event[strcspn(event, "*?[]/, \"'\\()")])
		return -ENOENT;
	for (size_t i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s:%s", sides[i], event);
		one = event_choices_add(choices, name, &error);
		if (one == -ENOMEM)
			return one;
		if (!one)
			err = 0;
	}
	return err;
}

struct sql_events *sql_events_new(struct model *m, const struct sql_source *source,
				  const struct sql_wanted *wanted, sql_row_take *take,
				  void *context, bool *none)
{
	struct sql_events *x = calloc(1, sizeof(*x));
	const struct event_sink sink = {.row = on_row, .context = x};
	int err;

	*none = false;
	if (!x)
		return NULL;
	x->source = source;
	x->wanted = wanted;
	x->take = take;
	x->context = context;
	err = event_choices_init(&x->choices);
	x->fields = fmemopen(x->fields_text, sizeof(x->fields_text), "w");
	if (!x->fields)
		err = -ENOMEM;
	if (!err)
		err = described_read(source->recording, x->choices.schemas);
	if (!err) {
		err = choose(&x->choices, wanted->event);
		*none = err == -ENOENT;
	}
	if (!err)
		x->reader = event_reader_new(m, &x->choices, &sink);
	if (x->reader)
		return x;
	sql_events_free(x);
	return NULL;
}

void sql_events_free(struct sql_events *x)
{
	if (!x)
		return;
	event_reader_free(x->reader);
	event_choices_fini(&x->choices);
	if (x->fields)
		fclose(x->fields);
	free(x);
}
