/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_tracepoint.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "bpf/capture/tracepoint_format.h"

/* How sched_switch's record encodes the state since Linux 4.15 (TASK_REPORT and what follows). */
enum {
	RECORD_STATES = VS_TASK_INTERRUPTIBLE | VS_TASK_UNINTERRUPTIBLE | VS_TASK_STOPPED |
			VS_TASK_TRACED | VS_TASK_PARKED, /* as in the event */
	RECORD_EXITED = 0x30,
	RECORD_IDLE = 0x80, /* an uninterruptible sleep that does not count as load */
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

static void switch_finish(const struct perf_tracepoint *t, const struct perf_record *record,
			  struct vs_event *event)
{
	const vs_u64 state = event->arg0;

	(void)t;
	(void)record;
	if (state & RECORD_EXITED)
		event->arg0 = VS_TASK_DEAD;
	else if (state & RECORD_STATES)
		event->arg0 = state & RECORD_STATES;
	else
		event->arg0 = state & RECORD_IDLE ? VS_TASK_UNINTERRUPTIBLE | VS_TASK_IDLE
						  : VS_TASK_RUNNING;
}

static void comm_copy(const uint8_t *comm, struct vs_event *event)
{
	char padded[16] = "";

	memcpy(padded, comm, strnlen((const char *)comm, sizeof(padded) - 1));
	memcpy(&event->arg0, padded, 8);
	memcpy(&event->arg1, padded + 8, 8);
}

/* extra: comm, clone_flags */
static void newtask_finish(const struct perf_tracepoint *t, const struct perf_record *record,
			   struct vs_event *event)
{
	event->pid2 = field_read(record, &t->extra[1]) & CLONE_THREAD ? record->tgid : event->pid;
	comm_copy(record->raw + t->extra[0].offset, event);
}

static void exit_finish(const struct perf_tracepoint *t, const struct perf_record *record,
			struct vs_event *event)
{
	(void)t;
	event->pid2 = record->tgid;
}

#define CURRENT "common_pid"
#define VECTOR(vector, NAME)                                                                       \
	{.system = "irq_vectors",                                                                  \
	 .name = vector "_entry",                                                                  \
	 .type = VS_EVENT_VECTOR_ENTRY,                                                            \
	 .arg0_constant = VS_VECTOR_##NAME,                                                        \
	 .arg1 = {"vector"}},                                                                      \
	{                                                                                          \
		.system = "irq_vectors", .name = vector "_exit", .type = VS_EVENT_VECTOR_EXIT,     \
		.arg0_constant = VS_VECTOR_##NAME, .arg1 = {                                       \
			"vector"                                                                   \
		}                                                                                  \
	}

/* clang-format off */
static const struct perf_tracepoint_source guest_sources[] = {
	{"sched", "sched_switch", VS_EVENT_SCHED_SWITCH, .pid = "prev_pid", .pid2 = "next_pid",
	 .arg0 = {"prev_state"}, .arg1 = {"prev_prio", "next_prio"}, .finish = switch_finish},
	{"sched", "sched_wakeup", VS_EVENT_SCHED_WAKEUP, .pid = "pid", .pid2 = CURRENT,
	 .arg0 = {"target_cpu"}, .arg1 = {"prio"}},
	{"sched", "sched_wakeup_new", VS_EVENT_SCHED_WAKEUP_NEW, .pid = "pid", .pid2 = CURRENT,
	 .arg0 = {"target_cpu"}, .arg1 = {"prio"}},
	{"sched", "sched_migrate_task", VS_EVENT_SCHED_MIGRATE, .pid = "pid", .pid2 = CURRENT,
	 .arg0 = {"orig_cpu"}, .arg1 = {"dest_cpu"}},
	{"task", "task_newtask", VS_EVENT_TASK_NAME, .pid = "pid",
	 .extra = {"comm", "clone_flags"}, .finish = newtask_finish},
	{"sched", "sched_process_exit", VS_EVENT_TASK_EXIT, .pid = "pid", .finish = exit_finish},
	{"irq", "irq_handler_entry", VS_EVENT_IRQ_ENTRY, .arg0 = {"irq"}},
	{"irq", "irq_handler_exit", VS_EVENT_IRQ_EXIT, .arg0 = {"irq"}, .arg1 = {"ret"}},
	{"irq", "softirq_entry", VS_EVENT_SOFTIRQ_ENTRY, .arg0 = {"vec"}},
	{"irq", "softirq_exit", VS_EVENT_SOFTIRQ_EXIT, .arg0 = {"vec"}},
	VECTOR("local_timer", LOCAL_TIMER),
	VECTOR("reschedule", RESCHEDULE),
	VECTOR("call_function", CALL_FUNCTION),
	VECTOR("call_function_single", CALL_FUNCTION_SINGLE),
};

static const struct perf_tracepoint_source host_sources[] = {
	{"sched", "sched_switch", VS_EVENT_SCHED_SWITCH, .pid = "prev_pid", .pid2 = "next_pid",
	 .arg0 = {"prev_state"}, .arg1 = {"prev_prio", "next_prio"}, .finish = switch_finish},
	{"sched", "sched_wakeup_new", VS_EVENT_SCHED_WAKEUP_NEW, .pid = "pid", .pid2 = CURRENT,
	 .arg0 = {"target_cpu"}, .arg1 = {"prio"}},
	{"signal", "signal_generate", VS_EVENT_SIGNAL, .pid = "pid", .pid2 = CURRENT,
	 .arg0 = {"sig"}},
	{"task", "task_newtask", PERF_NEW_TASK, .pid = "pid",
	 .extra = {"comm", "clone_flags"}, .finish = newtask_finish},
	{"sched", "sched_process_exit", VS_EVENT_TASK_EXIT, .pid = "pid"},
	{"sched", "sched_waking", PERF_WAKING, .pid = "pid", .pid2 = CURRENT, .by_thread = true},
	{"sched", "sched_wakeup", VS_EVENT_SCHED_WAKEUP, .pid = "pid", .pid2 = CURRENT,
	 .arg0 = {"target_cpu"}, .arg1 = {"prio"}, .by_thread = true},
	{"sched", "sched_migrate_task", VS_EVENT_SCHED_MIGRATE, .pid = "pid", .pid2 = CURRENT,
	 .arg0 = {"orig_cpu"}, .arg1 = {"dest_cpu"}, .by_thread = true},
};
/* clang-format on */

const struct perf_tracepoint_source *perf_tracepoint_host_sources(size_t *n)
{
	*n = sizeof(host_sources) / sizeof(host_sources[0]);
	return host_sources;
}

const struct perf_tracepoint_source *perf_tracepoint_guest_sources(size_t *n)
{
	*n = sizeof(guest_sources) / sizeof(guest_sources[0]);
	return guest_sources;
}

/* most: as many bytes as the field may have. */
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

int perf_tracepoint_resolve(struct tep_handle *tep, const struct perf_tracepoint_source *source,
			    struct perf_tracepoint *out)
{
	struct tep_event *event;
	int error = tracepoint_format_parse(tep, source->system, source->name, &event);

	*out = (struct perf_tracepoint){.source = source, .type = source->type};
	if (error)
		return error;
	out->id = event->id;
	error = field_find(event, source->pid ? source->pid : CURRENT, 8, out, &out->pid);
	if (!error)
		error = field_find(event, source->pid2, 8, out, &out->pid2);
	for (size_t i = 0; i < VS_TRACEPOINT_PARTS && !error; i++) {
		error = field_find(event, source->arg0[i], 8, out, &out->arg0[i]);
		if (!error)
			error = field_find(event, source->arg1[i], 8, out, &out->arg1[i]);
		out->arg0[i].shift = out->arg1[i].shift = i ? 32 : 0;
	}
	for (size_t i = 0; i < PERF_TRACEPOINT_EXTRA && !error; i++)
		error = field_find(event, source->extra[i], 16, out, &out->extra[i]);
	return error;
}

static void raw_bytes_cover(struct perf_tracepoint *t, const struct vs_tracepoint_field *f)
{
	if ((size_t)(f->offset + f->bytes) > t->raw_bytes)
		t->raw_bytes = (size_t)(f->offset + f->bytes);
}

int perf_tracepoint_resolve_row(struct tep_handle *tep, const struct tracepoint_source *row,
				tracepoint_reader reader, struct perf_tracepoint *out)
{
	struct vs_tracepoint fields;
	struct tep_event *event;
	int error = tracepoint_resolve(row, reader, &fields);

	if (!error)
		error = tracepoint_format_parse(tep, row->system, row->name, &event);
	if (error)
		return error;
	*out = (struct perf_tracepoint){
		.id = event->id, .type = (vs_u16)fields.type, .scope = fields.scope};
	error = field_find(event, CURRENT, 8, out, &out->pid);
	for (size_t i = 0; i < VS_TRACEPOINT_PARTS; i++) {
		out->arg0[i] = fields.arg0[i];
		out->arg1[i] = fields.arg1[i];
		raw_bytes_cover(out, &out->arg0[i]);
		raw_bytes_cover(out, &out->arg1[i]);
	}
	return error;
}

bool perf_tracepoint_decode(const struct perf_tracepoint *t, const struct perf_record *record,
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
	if (!t->source)
		return true;
	event->arg0 += t->source->arg0_constant;
	if (t->source->finish)
		t->source->finish(t, record, event);
	return true;
}
