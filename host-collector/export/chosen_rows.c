/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/chosen_rows.h"

#include <errno.h>
#include <stdio.h>

#include "host-collector/util/escape.h"

enum { RANK_CHOSEN = 2 };

/* Returns NULL if there are too many. */
static struct chosen_row *row_get(struct chosen_rows *x, const struct user_hit *hit)
{
	const char *machine =
		hit->source == VS_SOURCE_HOST ? "host" : model_vm_name(x->model, hit->source);
	char name[2 * sizeof(hit->event->name)];
	struct chosen_row *row;

	for (size_t i = 0; i < x->n; i++) {
		if (x->rows[i].event == hit->event)
			return &x->rows[i];
	}
	if (x->n == CHOSEN_ROWS_MAX)
		return NULL;
	if (!x->group)
		x->group = trace_track_new(x->file, 0, "Chosen events", RANK_CHOSEN);
	row = &x->rows[x->n];
	snprintf(name, sizeof(name), "%.24s: %.63s", escape(machine).text,
		 escape(hit->event->name).text);
	*row = (struct chosen_row){
		.event = hit->event,
		.source = hit->source,
		.track = trace_track_new(x->file, x->group, name, (uint32_t)x->n),
	};
	snprintf(name, sizeof(name), "%s:%s", hit->event->system, hit->event->name);
	row->name = trace_name(x->file, escape(name).text);
	x->n++;
	return row;
}

static bool is_selected(const struct chosen_rows *x, const struct user_hit *hit)
{
	uint32_t vm, vcpu;

	if (hit->source != VS_SOURCE_HOST)
		return narrow_has_guest_cpu(x->narrow, x->model, hit->source, hit->head.cpu);
	if (model_vcpu_of_thread(x->model, hit->head.pid, &vm, &vcpu))
		return !narrow_rows(x->narrow);
	return narrow_has_vcpu(x->narrow, x->model, vm, vcpu);
}

static void fields_annotate(const struct chosen_rows *x, const struct user_hit *hit)
{
	const struct message_user_event *e = hit->event;
	char text[VS_USER_TEXT_MAX + 32];
	uint64_t number;

	for (size_t i = 0; i < e->n_fields; i++) {
		if (e->fields[i].type != USER_HEX && user_hit_number(hit, i, &number))
			trace_annotate_int(x->file, escape(e->fields[i].name).text,
					   (int64_t)number);
		else
			trace_annotate_text(x->file, escape(e->fields[i].name).text,
					    escape(user_hit_text(hit, i, text, sizeof(text))).text);
	}
}

static void on_hit(void *context, const struct user_hit *hit)
{
	struct chosen_rows *x = context;
	const uint64_t t = boottime_of(x->boottime, (struct host_ns){hit->t_ns});
	const struct chosen_row *row;
	struct trace_event opened;

	if (!hit->event || hit->head.type != VS_EVENT_USER || !trace_has(x->file, t) ||
	    !is_selected(x, hit))
		return;
	row = row_get(x, hit);
	if (!row)
		return;
	opened = trace_event_open(x->file, t, row->track, EVENT_INSTANT, row->name);
	fields_annotate(x, hit);
	trace_annotate_int(x->file, "cpu", hit->head.cpu);
	trace_annotate_int(x->file, "tid", hit->head.pid);
	if (hit->err_ns != UINT32_MAX)
		trace_annotate_int(x->file, "error_ns", hit->err_ns);
	trace_event_close(x->file, opened);
}

int chosen_rows_init(struct chosen_rows *x)
{
	x->hits = user_hits_new(model_user_events(x->model), on_hit, x);
	return x->hits ? 0 : -ENOMEM;
}

void chosen_rows_fini(struct chosen_rows *x)
{
	user_hits_free(x->hits);
}

void chosen_rows_finish(struct chosen_rows *x)
{
	user_hits_flush(x->hits);
}
