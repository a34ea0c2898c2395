/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/vcpu_slices.h"

#include <stdio.h>
#include <stdlib.h>

#include "host-collector/model/exit_name.h"
#include "host-collector/util/escape.h"

enum { STACK_TEXT_BYTES = 512 };

static uint32_t exit_name_of(struct vcpu_slices *x, const struct vcpu_exit *exit)
{
	bool cached = exit->isa < 3 && exit->reason < EXIT_NAMES_CACHED;
	char text[TRACE_NAME_BYTES];
	uint32_t name;

	if (cached && x->exits[exit->isa][exit->reason])
		return x->exits[exit->isa][exit->reason];
	snprintf(text, sizeof(text), "exit: %s", exit_name(exit->isa, exit->reason).text);
	name = trace_name(x->file, text);
	if (cached)
		x->exits[exit->isa][exit->reason] = name;
	return name;
}

static uint32_t state_name(struct vcpu_slices *x, enum vcpu_state state)
{
	if (!x->states[state])
		x->states[state] = trace_name(x->file, vcpu_state_name(state));
	return x->states[state];
}

static void annotate_task(struct vcpu_slices *x, const char *key, int32_t pid)
{
	char text[TRACE_NAME_BYTES + 16];

	if (pid <= 0)
		return;
	/* By the model: announcing a task would write a packet inside this one. */
	snprintf(text, sizeof(text), "%.90s (%d)",
		 escape(model_task_name(x->tasks->model, TRACE_MACHINE_HOST, pid)).text, pid);
	trace_annotate_text(x->file, key, text);
}

static void annotate_stack(struct vcpu_slices *x, const char *key, uint32_t id)
{
	const struct stack *s = id ? model_stack_of(x->tasks->model, id) : NULL;
	char text[STACK_TEXT_BYTES];
	size_t len = 0;

	if (!s || !s->n_frames)
		return;
	for (size_t i = 0; i < s->n_frames && len + 1 < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.60s", i ? " < " : "",
					escape(s->frames[i].symbol).text);
	trace_annotate_text(x->file, key, text);
}

/* Adds the details of a span as arguments. */
static void annotate(struct vcpu_slices *x, const struct vcpu_span *s)
{
	annotate_task(x, "held by", s->holder_pid);
	annotate_task(x, "woken by", s->waker_pid);
	annotate_task(x, "signal by", s->signal_pid);
	if (s->wait_class != WAIT_NONE)
		trace_annotate_text(x->file, "wait", wait_class_name(s->wait_class));
	annotate_stack(x, "stack", s->waiter_stack);
	annotate_stack(x, "waker's stack", s->waker_stack);
}

static void exit_close(struct vcpu_slices *x, struct vcpu_track *v)
{
	if (v->exit)
		trace_end(x->file, v->end, v->track);
	v->exit = 0;
}

void vcpu_slices_span(struct vcpu_slices *x, struct vcpu_track *v, const struct vcpu_span *span)
{
	/* Time that is not known is in no exit, whatever came before it. */
	uint64_t exit =
		span->state == VCPU_UNKNOWN || span->state == VCPU_GUEST ? 0 : span->exit.serial;
	/* Most spans begin where the span before them ended. */
	uint64_t begin = v->ended.ns == span->begin.ns && v->track
				 ? v->end
				 : boottime_of(x->boottime, span->begin);
	struct trace_event e;

	if (!v->track)
		v->track = tasks_track(x->tasks, span->tid);
	if (exit != v->exit)
		exit_close(x, v);
	if (exit && !v->exit)
		trace_begin(x->file, begin, v->track, exit_name_of(x, &span->exit));
	v->exit = exit;
	v->ended = span->end;
	v->end = boottime_of(x->boottime, span->end);
	if (span->state == VCPU_GUEST || span->state == VCPU_KVM) {
		trace_begin(x->file, begin, v->track, state_name(x, span->state));
	} else {
		e = trace_event_open(x->file, begin, v->track, EVENT_BEGIN,
				     state_name(x, span->state));
		annotate(x, span);
		trace_event_close(x->file, e);
	}
	trace_end(x->file, v->end, v->track);
}

void vcpu_slices_finish(struct vcpu_slices *x, struct vcpu_track *v)
{
	exit_close(x, v);
}
