/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_tracepoint.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "bpf/capture/tracepoint_format.h"

/* How sched_switch's record encodes the state since Linux 4.14 (TASK_REPORT and what follows). */
enum {
	RECORD_STATES = VS_TASK_INTERRUPTIBLE | VS_TASK_UNINTERRUPTIBLE | VS_TASK_STOPPED |
			VS_TASK_TRACED | VS_TASK_PARKED, /* as in the event */
	RECORD_EXITED = 0x30,
	RECORD_IDLE = 0x80, /* an uninterruptible sleep that does not count as load */
	RECORD_SHIFTED_RUNNING = 0x1,
	RECORD_PREEMPTED = 0x100,
};

static vs_u64 field_read(const struct perf_record *record, const struct vs_tracepoint_field *f)
{
	const unsigned int unused = 64 - 8u * f->bytes;
	vs_u64 value = 0;

	if (!f->bytes)
		return 0;
	memcpy(&value, record->raw + f->offset, f->bytes);
	if (f->is_signed)
		value = (vs_u64)((int64_t)(value << unused) >> unused);
	return value << f->shift;
}

static vs_u64 fields_read(const struct perf_record *record, const struct vs_tracepoint_field *f)
{
	return field_read(record, &f[0]) | field_read(record, &f[1]);
}

/*
 * Linux 4.18, which lacks a later fix, writes each state one bit too high: 1 for a task that stays
 * runnable, 2 for an interruptible sleep. The format does not show it. The idle task does, because
 * it never sleeps; and no task's state is 0 where states are shifted. A preempted task has the same
 * bit in both kinds. An idle sleep has it too where states are shifted, and reads as runnable.
 */
static vs_u64 switch_state_read(struct perf_tracepoint *t, const struct vs_event *event)
{
	const vs_u64 state = ev_sched_switch_state(event);

	if (!state)
		t->states_shifted = false;
	else if (!event->pid && state == RECORD_SHIFTED_RUNNING)
		t->states_shifted = true;
	return t->states_shifted && state < RECORD_PREEMPTED ? state >> 1 : state;
}

static void switch_finish(struct perf_tracepoint *t, const struct perf_record *record,
			  struct vs_event *event)
{
	const vs_u64 record_state = switch_state_read(t, event);
	vs_u64 state = record_state & RECORD_STATES;

	(void)record;
	if (record_state & RECORD_EXITED)
		state = VS_TASK_DEAD;
	else if (!state && record_state & RECORD_IDLE)
		state = VS_TASK_UNINTERRUPTIBLE | VS_TASK_IDLE;
	ev_set_sched_switch_state(event, state);
}

static void comm_copy(const uint8_t *comm, struct vs_event *event)
{
	char padded[16] = "";

	memcpy(padded, comm, strnlen((const char *)comm, sizeof(padded) - 1));
	ev_set_task_comm(event, padded);
}

/* extra: comm, clone_flags */
static void newtask_finish(struct perf_tracepoint *t, const struct perf_record *record,
			   struct vs_event *event)
{
	event->pid2 = field_read(record, &t->extra[1]) & CLONE_THREAD ? record->tgid : event->pid;
	comm_copy(record->raw + t->extra[0].offset, event);
}

static void exit_finish(struct perf_tracepoint *t, const struct perf_record *record,
			struct vs_event *event)
{
	(void)t;
	event->pid2 = record->tgid;
}

static const struct perf_tracepoint_special specials[] = {
	{"sched_switch", BY_GUEST, .finish = switch_finish},
	{"sched_switch", BY_HOST, .finish = switch_finish},
	{"task_newtask", BY_GUEST, .extra = {"comm", "clone_flags"}, .finish = newtask_finish},
	{"task_newtask", BY_HOST, .type = PERF_NEW_TASK, .extra = {"comm", "clone_flags"},
	 .finish = newtask_finish},
	{"sched_process_exit", BY_GUEST, .finish = exit_finish},
	{"sched_waking", BY_HOST, .type = PERF_WAKING, .by_thread = true},
	{"sched_wakeup", BY_HOST, .by_thread = true},
	{"sched_migrate_task", BY_HOST, .by_thread = true},
};

static struct perf_tracepoint_special special_find(enum tracepoint_users user, const char *name)
{
	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
		if (specials[i].user == user && !strcmp(specials[i].name, name))
			return specials[i];
	}
	return (struct perf_tracepoint_special){0};
}

bool perf_tracepoint_source(enum tracepoint_users user, size_t index,
			    struct perf_tracepoint_source *out)
{
	size_t n;
	const struct event_tracepoint *all = event_tracepoints(&n);

	for (int by_thread = 0; by_thread < 2; by_thread++) {
		for (size_t i = 0; i < n; i++) {
			if (!(all[i].users & user))
				continue;
			out->row = &all[i];
			out->special = special_find(user, all[i].name);
			if (out->special.by_thread == by_thread && !index--)
				return true;
		}
	}
	return false;
}

/* most: the largest size of the field in bytes. */
static int field_find(struct tep_event *event, const char *name, size_t most,
		      struct perf_tracepoint *t, struct vs_tracepoint_field *out)
{
	const struct tep_format_field *found;

	*out = (struct vs_tracepoint_field){0};
	if (!name)
		return 0;
	found = tep_find_any_field(event, name);
	if (!found || found->size <= 0 || (size_t)found->size > most || found->offset < 0 ||
	    found->offset > 8192)
		return -EPROTO;
	out->offset = (vs_u16)found->offset;
	out->bytes = (vs_u16)found->size;
	if ((size_t)(found->offset + found->size) > t->raw_bytes)
		t->raw_bytes = (size_t)(found->offset + found->size);
	return 0;
}

/* Returns the place for a field of the event, or NULL if the member is full. */
static struct vs_tracepoint_field *place_of(struct perf_tracepoint *t,
					    const struct event_field *field)
{
	struct vs_tracepoint_field *parts;

	if (field->place == EVENT_PLACE_pid)
		return &t->pid;
	if (field->place == EVENT_PLACE_pid2)
		return &t->pid2;
	parts = field->place == EVENT_PLACE_arg0 ? t->arg0 : t->arg1;
	for (size_t i = 0; i < VS_TRACEPOINT_PARTS; i++) {
		if (!parts[i].bytes)
			return &parts[i];
	}
	return NULL;
}

int perf_tracepoint_resolve(struct tep_handle *tep, const struct perf_tracepoint_source *source,
			    struct perf_tracepoint *out)
{
	const struct perf_tracepoint_special *special = &source->special;
	size_t n;
	const struct event_field *fields = event_fields(source->row->type, &n);
	struct tep_event *event;
	int error = tracepoint_format_parse(tep, source->row->system, source->row->name, &event);

	*out = (struct perf_tracepoint){.type = special->type ? special->type : source->row->type,
					.constant = source->row->constant,
					.finish = special->finish};
	if (error)
		return error;
	out->id = event->id;
	for (size_t i = 0; i < n && !error; i++) {
		struct vs_tracepoint_field *place = place_of(out, &fields[i]);

		if (!fields[i].kernel)
			continue;
		error = place ? field_find(event, fields[i].kernel, 8, out, place) : -EPROTO;
		if (!error)
			place->shift = fields[i].shift;
	}
	for (size_t i = 0; i < PERF_TRACEPOINT_EXTRA && !error; i++)
		error = field_find(event, special->extra[i], 16, out, &out->extra[i]);
	return error;
}

static void raw_bytes_cover(struct perf_tracepoint *t, const struct vs_tracepoint_field *f)
{
	if ((size_t)(f->offset + f->bytes) > t->raw_bytes)
		t->raw_bytes = (size_t)(f->offset + f->bytes);
}

int perf_tracepoint_resolve_row(struct tep_handle *tep, const struct event_tracepoint *row,
				tracepoint_reader reader, struct perf_tracepoint *out)
{
	struct vs_tracepoint fields;
	struct tep_event *event;
	int error = tracepoint_resolve(row, reader, &fields);

	if (!error)
		error = tracepoint_format_parse(tep, row->system, row->name, &event);
	if (error)
		return error;
	*out = (struct perf_tracepoint){.id = event->id,
					.type = (vs_u16)fields.type,
					.scope = fields.scope,
					.is_row = true};
	error = field_find(event, "common_pid", 8, out, &out->pid);
	for (size_t i = 0; i < VS_TRACEPOINT_PARTS; i++) {
		out->arg0[i] = fields.arg0[i];
		out->arg1[i] = fields.arg1[i];
		raw_bytes_cover(out, &out->arg0[i]);
		raw_bytes_cover(out, &out->arg1[i]);
	}
	return error;
}

bool perf_tracepoint_decode(struct perf_tracepoint *t, const struct perf_record *record,
			    struct vs_event *event)
{
	if (record->raw_bytes < t->raw_bytes)
		return false;
	*event = (struct vs_event){
		.time = record->time,
		.type = t->type,
		.pid = (vs_s32)field_read(record, &t->pid),
		.pid2 = (vs_s32)field_read(record, &t->pid2),
		.arg0 = fields_read(record, t->arg0),
		.arg1 = fields_read(record, t->arg1),
	};
	event->arg0 += t->constant;
	if (t->finish)
		t->finish(t, record, event);
	return true;
}
