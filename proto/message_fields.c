// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rows of the catalogue. The comments of message.h and wire.proto say what a field means; a row
 * says how it is stored and which values are valid. A row without a bound says that any value is.
 */
#include "proto/message_fields.h"

#include <errno.h>

#include "proto/message.h"
#include "wire.pb-c.h"

#define WIRE(message, Name) typedef Vcpuscope__Wire__##Name wire_##message
WIRE(hello, Hello);
WIRE(cpu, Cpu);
WIRE(heartbeat, Heartbeat);
WIRE(aggregated, Aggregated);
WIRE(steal, Steal);
WIRE(cpu_steal, CpuSteal);
WIRE(echo_request, EchoRequest);
WIRE(echo_reply, EchoReply);
WIRE(clock_sample, ClockSample);
WIRE(kernel_log, KernelLog);
WIRE(log_line, KernelLogLine);
WIRE(stack, Stack);
WIRE(stack_frame, StackFrame);
WIRE(config, Config);
WIRE(config_event, ConfigEvent);
WIRE(config_reply, ConfigReply);
WIRE(config_limit, ConfigLimit);
WIRE(user_events, UserEvents);
WIRE(user_event, UserEvent);
WIRE(user_field, UserField);
WIRE(vm_info, VmInfo);
WIRE(vm_thread, VmThread);
WIRE(echo_observation, EchoObservation);
WIRE(note, Note);
WIRE(recording_end, RecordingEnd);
WIRE(vm_clock, VmClock);
WIRE(vm_clock_tsc, VmClockTsc);
WIRE(vm_clock_pvclock, VmClockPvclock);
WIRE(vm_clock_master, VmClockMaster);
WIRE(cpu_quota, CpuQuota);
WIRE(exit_summary, ExitSummary);
WIRE(exit_cell, ExitCell);
WIRE(task_origins, TaskOrigins);
WIRE(task_origin, TaskOrigin);

/* s: message or part; m: member of the struct; w: member on the wire. */
#define MEMBER(s, m)  (((struct message_##s *)0)->m)
#define WIRED(s, w)   (((wire_##s *)0)->w)
#define AT(s, m)      .at = offsetof(struct message_##s, m), .name = #s "." #m
#define WIRE_AT(s, w) .wire_at = offsetof(wire_##s, w)
#define NUMBER_ROW(s, m, w)                                                                        \
	AT(s, m), WIRE_AT(s, w), .form = FIELD_NUMBER, .bytes = sizeof(MEMBER(s, m)),              \
				 .wire_bytes = sizeof(WIRED(s, w)), .flags = KIND_OF(MEMBER(s, m))
#define KIND_OF(m)                                                                                 \
	_Generic(m, bool : FIELD_BOOL, int8_t : FIELD_SIGNED, int32_t : FIELD_SIGNED, default : 0)
#define BOUND(min, max, refused)                                                                   \
	.least = (uint64_t)(min), .most = (uint64_t)(max), .error = (refused)
#define ARRAY_ROW(s, m, n, w)                                                                      \
	AT(s, m), WIRE_AT(s, w), .bytes = sizeof(MEMBER(s, m)[0]),                                 \
				 .count_at = offsetof(struct message_##s, n),                      \
				 .wire_count_at = offsetof(wire_##s, n_##w)
#define LENGTH(s, m) .limit = sizeof(MEMBER(s, m)) / sizeof(MEMBER(s, m)[0])

/* ANY: any value. WITHIN: a value outside is refused. _AS: the wire has another name for it. */
#define ANY(s, m)                                                                                  \
	{                                                                                          \
		NUMBER_ROW(s, m, m)                                                                \
	}
#define ANY_AS(s, m, w)                                                                            \
	{                                                                                          \
		NUMBER_ROW(s, m, w)                                                                \
	}
#define WITHIN(s, m, min, max, refused)                                                            \
	{                                                                                          \
		NUMBER_ROW(s, m, m), BOUND(min, max, refused)                                      \
	}
/* The bound counts only while the bool `condition`, whose row comes before, is true. */
#define WITHIN_IF(s, condition, m, min, max, refused)                                              \
	{                                                                                          \
		NUMBER_ROW(s, m, m), BOUND(min, max, refused),                                     \
			.if_at = offsetof(struct message_##s, condition)                           \
	}
#define NOT_ABOVE(s, m, other)                                                                     \
	{                                                                                          \
		NUMBER_ROW(s, m, m), .not_above_at = offsetof(struct message_##s, other)           \
	}
#define TEXT(s, m)                                                                                 \
	{                                                                                          \
		AT(s, m), WIRE_AT(s, m), .form = FIELD_TEXT, .bytes = sizeof(MEMBER(s, m))         \
	}
/* PART: all zeros if absent. OPTIONAL: its `known` says whether it is there. */
#define PART_ROW(s, m, of)                                                                         \
	AT(s, m), WIRE_AT(s, m), .form = FIELD_PART, .bytes = sizeof(MEMBER(s, m)),                \
				 .part = &message_##of##_layout
#define PART(s, m, of)                                                                             \
	{                                                                                          \
		PART_ROW(s, m, of)                                                                 \
	}
#define REQUIRED(s, m, of)                                                                         \
	{                                                                                          \
		PART_ROW(s, m, of), .flags = FIELD_REQUIRED                                        \
	}
#define OPTIONAL(s, m, of)                                                                         \
	{                                                                                          \
		PART_ROW(s, m, of), .if_at = offsetof(struct message_##s, m.known)                 \
	}
#define LIST(s, m, n, w, of)                                                                       \
	{                                                                                          \
		ARRAY_ROW(s, m, n, w), LENGTH(s, m), .form = FIELD_LIST,                           \
						     .part = &message_##of##_layout                \
	}
#define NUMBERS(s, m, n, w)                                                                        \
	{                                                                                          \
		ARRAY_ROW(s, m, n, w), LENGTH(s, m), .form = FIELD_NUMBERS                         \
	}
#define TEXTS(s, m, n)                                                                             \
	{                                                                                          \
		ARRAY_ROW(s, m, n, m), LENGTH(s, m), .form = FIELD_TEXTS                           \
	}

#define LAYOUT(s, descriptor, ...)                                                                 \
	{                                                                                          \
		.wire = &vcpuscope__wire__##descriptor##__descriptor,                              \
		.bytes = sizeof(struct message_##s), .fields = s##_fields,                         \
		.n_fields = sizeof(s##_fields) / sizeof(s##_fields[0]), __VA_ARGS__                \
	}
#define PART_LAYOUT(s, descriptor)                                                                 \
	static const struct message_layout message_##s##_layout = LAYOUT(s, descriptor, )
#define MESSAGE_LAYOUT(s, ...)                                                                     \
	const struct message_layout message_##s##_layout = LAYOUT(s, s, __VA_ARGS__)

/* ---- from both sides ---- */

static const struct message_field cpu_fields[] = {
	WITHIN(cpu, cpu, 0, VS_CPUS_MAX - 1, -E2BIG),
	ANY(cpu, apic_id),
};
PART_LAYOUT(cpu, cpu);

static const struct message_field hello_fields[] = {
	ANY(hello, protocol_max),
	NOT_ABOVE(hello, protocol_min, protocol_max),
	WITHIN(hello, role, STREAM_ROLE_HOST, STREAM_ROLE_GUEST, -EBADMSG),
	WITHIN(hello, clock, STREAM_CLOCK_HOST_TSC, STREAM_CLOCK_KVMCLOCK_NS, -EBADMSG),
	WITHIN(hello, clock_hz, 1, UINT64_MAX, -EBADMSG),
	TEXT(hello, program_version),
	TEXT(hello, kernel_release),
	TEXT(hello, boot_id),
	ANY_AS(hello, dmesg.known, dmesg_known),
	ANY_AS(hello, dmesg.time, dmesg_time),
	ANY_AS(hello, dmesg.ns, dmesg_ns),
	ANY_AS(hello, dmesg.err, dmesg_err),
	ANY(hello, tick_hz),
	ANY(hello, suspended_ns),
	ANY(hello, watchdog_s),
	ANY(hello, features),
	ANY(hello, look_period_ns),
	TEXT(hello, look_when),
	LIST(hello, cpus, n_cpus, cpus, cpu),
};
MESSAGE_LAYOUT(hello, );

static const struct message_field clock_sample_fields[] = {
	ANY(clock_sample, tsc),    ANY(clock_sample, tsc_width),   ANY(clock_sample, monotonic_ns),
	ANY(clock_sample, raw_ns), ANY(clock_sample, realtime_ns),
};
MESSAGE_LAYOUT(clock_sample, );

/* Conversions rely on these bounds. */
static const struct message_field vm_clock_pvclock_fields[] = {
	WITHIN(vm_clock_pvclock, shift, -31, 31, -EBADMSG),
	WITHIN(vm_clock_pvclock, flags, 0, UINT8_MAX, -EBADMSG),
	WITHIN(vm_clock_pvclock, mul, 1, UINT32_MAX, -EBADMSG),
	ANY(vm_clock_pvclock, version),
	ANY(vm_clock_pvclock, tsc_timestamp),
	ANY(vm_clock_pvclock, system_time),
};
PART_LAYOUT(vm_clock_pvclock, vm_clock_pvclock);

static const struct message_field aggregated_fields[] = {
	ANY(aggregated, count),
	ANY(aggregated, total_ns),
	ANY(aggregated, max_ns),
};
PART_LAYOUT(aggregated, aggregated);

static const struct message_field cpu_steal_fields[] = {
	WITHIN(cpu_steal, cpu, 0, VS_CPUS_MAX - 1, -E2BIG),
	ANY(cpu_steal, steal_ns),
};
PART_LAYOUT(cpu_steal, cpu_steal);

static const struct message_field steal_fields[] = {
	ANY(steal, clock),
	ANY(steal, time),
	ANY(steal, err),
	ANY(steal, unit_ns),
	LIST(steal, cpus, n_cpus, cpus, cpu_steal),
};
PART_LAYOUT(steal, steal);

static const struct message_field heartbeat_fields[] = {
	ANY(heartbeat, time),
	ANY(heartbeat, cpu_time_ns),
	ANY(heartbeat, rss_bytes),
	ANY(heartbeat, emitted),
	ANY(heartbeat, delivered),
	ANY(heartbeat, dropped_kernel),
	ANY(heartbeat, dropped_user),
	ANY(heartbeat, missed),
	{AT(heartbeat, aggregated), WIRE_AT(heartbeat, aggregated), .form = FIELD_NUMBERED,
	 .bytes = sizeof(struct message_aggregated), .limit = EVENT_CLASSES,
	 .wire_count_at = offsetof(wire_heartbeat, n_aggregated),
	 .number_at = offsetof(wire_aggregated, class_), .part = &message_aggregated_layout},
	PART(heartbeat, sample, clock_sample),
	ANY_AS(heartbeat, dmesg.known, dmesg_known),
	ANY_AS(heartbeat, dmesg.time, dmesg_time),
	ANY_AS(heartbeat, dmesg.ns, dmesg_ns),
	ANY_AS(heartbeat, dmesg.err, dmesg_err),
	OPTIONAL(heartbeat, pvclock, vm_clock_pvclock),
	ANY(heartbeat, watchdog),
	OPTIONAL(heartbeat, steal, steal),
};
MESSAGE_LAYOUT(heartbeat, );

static const struct message_field echo_request_fields[] = {
	ANY(echo_request, id),
};
MESSAGE_LAYOUT(echo_request, );

static const struct message_field echo_reply_fields[] = {
	ANY(echo_reply, id),
	ANY(echo_reply, received),
	ANY(echo_reply, sent),
};
MESSAGE_LAYOUT(echo_reply, );

static const struct message_field log_line_fields[] = {
	ANY(log_line, dmesg_us),
	ANY(log_line, level),
	TEXT(log_line, text),
};
PART_LAYOUT(log_line, kernel_log_line);

static const struct message_field kernel_log_fields[] = {
	LIST(kernel_log, lines, n_lines, lines, log_line),
};
MESSAGE_LAYOUT(kernel_log, );

static const struct message_field stack_frame_fields[] = {
	TEXT(stack_frame, symbol),
	TEXT(stack_frame, module),
	ANY(stack_frame, offset),
	ANY(stack_frame, kernel),
};
PART_LAYOUT(stack_frame, stack_frame);

static const struct message_field stack_fields[] = {
	ANY(stack, id),
	ANY(stack, pid),
	LIST(stack, frames, n_frames, frames, stack_frame),
};
MESSAGE_LAYOUT(stack, );

static const struct message_field config_event_fields[] = {
	ANY(config_event, kind),    TEXT(config_event, system), TEXT(config_event, name),
	TEXT(config_event, filter), TEXT(config_event, fields), TEXT(config_event, spec),
};
PART_LAYOUT(config_event, config_event);

static const struct message_field config_fields[] = {
	ANY(config, id),
	ANY(config, asks),
	ANY(config, classes),
	ANY(config, level),
	ANY(config, handler_over_ns),
	ANY(config, sample_hz),
	TEXTS(config, tasks, n_tasks),
	LIST(config, events, n_events, events, config_event),
	ANY(config, look_period_ns),
	TEXT(config, look_when),
};
MESSAGE_LAYOUT(config, );

static const struct message_field config_limit_fields[] = {
	ANY(config_limit, field),
	ANY(config_limit, reason),
	TEXT(config_limit, text),
};
PART_LAYOUT(config_limit, config_limit);

static const struct message_field config_reply_fields[] = {
	ANY(config_reply, id),
	ANY(config_reply, time),
	REQUIRED(config_reply, in_force, config),
	LIST(config_reply, limits, n_limits, limits, config_limit),
};
MESSAGE_LAYOUT(config_reply, );

const struct message_layout message_batch_layout = {.wire = &vcpuscope__wire__batch__descriptor};

/* ---- from the collector only ---- */

static const struct message_field vm_thread_fields[] = {
	ANY(vm_thread, tid),
	TEXT(vm_thread, comm),
	ANY(vm_thread, is_vcpu),
	WITHIN_IF(vm_thread, is_vcpu, vcpu, 0, VS_CPUS_MAX - 1, -E2BIG),
	ANY(vm_thread, apic_id_known),
	ANY(vm_thread, apic_id),
};
PART_LAYOUT(vm_thread, vm_thread);

static const struct message_field vm_info_fields[] = {
	ANY(vm_info, vm),         TEXT(vm_info, name),
	ANY(vm_info, qemu_pid),   TEXT(vm_info, accelerator),
	ANY(vm_info, protection), LIST(vm_info, threads, n_threads, threads, vm_thread),
};
MESSAGE_LAYOUT(vm_info, );

static const struct message_field echo_observation_fields[] = {
	ANY(echo_observation, vm),
	ANY(echo_observation, host_sent),
	ANY(echo_observation, guest_received),
	ANY(echo_observation, guest_sent),
	ANY(echo_observation, host_received),
};
MESSAGE_LAYOUT(echo_observation, );

static const struct message_field note_fields[] = {
	ANY(note, vm),
	WITHIN(note, kind, NOTE_CHANNEL_UP, NOTE_KIND_LAST, -EBADMSG),
	ANY(note, host_tsc),
	TEXT(note, text),
};
MESSAGE_LAYOUT(note, );

static const struct message_field recording_end_fields[] = {
	ANY(recording_end, entries),
	ANY(recording_end, host_dropped),
	{ARRAY_ROW(recording_end, checkpoints, n_checkpoints, checkpoint_offset),
	 .form = FIELD_NUMBERS, .limit = VS_CHECKPOINTS_MAX, .flags = FIELD_ALLOCATED},
};
MESSAGE_LAYOUT(recording_end, );

static const struct message_field vm_clock_tsc_fields[] = {
	ANY(vm_clock_tsc, scaling_known),
	WITHIN(vm_clock_tsc, frac_bits, 0, 63, -EBADMSG),
	ANY(vm_clock_tsc, offset),
	ANY(vm_clock_tsc, ratio),
};
PART_LAYOUT(vm_clock_tsc, vm_clock_tsc);

static const struct message_field vm_clock_master_fields[] = {
	ANY(vm_clock_master, used),
	ANY(vm_clock_master, offsets_matched),
};
PART_LAYOUT(vm_clock_master, vm_clock_master);

static const struct message_field vm_clock_fields[] = {
	ANY(vm_clock, vm),
	WITHIN(vm_clock, vcpu, 0, INT32_MAX, -EBADMSG),
	WITHIN(vm_clock, source, VM_CLOCK_PVCLOCK_UPDATE, VM_CLOCK_SOURCE_LAST, -EBADMSG),
	NOT_ABOVE(vm_clock, from_min, from_max),
	ANY(vm_clock, from_max),
	OPTIONAL(vm_clock, tsc, vm_clock_tsc),
	OPTIONAL(vm_clock, pvclock, vm_clock_pvclock),
	OPTIONAL(vm_clock, master, vm_clock_master),
};

/* Conversions rely on it. */
static bool vm_clock_valid(const void *message)
{
	const struct message_vm_clock *m = message;

	if (m->tsc.known && m->tsc.frac_bits && !m->tsc.ratio)
		return false;
	return m->tsc.known || m->pvclock.known || m->master.known;
}
MESSAGE_LAYOUT(vm_clock, .valid = vm_clock_valid);

static const struct message_field cpu_quota_fields[] = {
	ANY(cpu_quota, vm),
	NUMBERS(cpu_quota, vcpus, n_vcpus, vcpu),
	NOT_ABOVE(cpu_quota, from, until),
	ANY(cpu_quota, until),
	ANY(cpu_quota, throttled_ns),
	ANY(cpu_quota, periods),
	ANY(cpu_quota, quota_us),
	ANY(cpu_quota, period_us),
	TEXT(cpu_quota, cgroup),
};
MESSAGE_LAYOUT(cpu_quota, );

static const struct message_field user_field_fields[] = {
	TEXT(user_field, name),
	WITHIN(user_field, type, USER_UNSIGNED, USER_TEXT, -EBADMSG),
	WITHIN(user_field, bytes, 1, VS_USER_TEXT_MAX, -EBADMSG),
};
PART_LAYOUT(user_field, user_field);

static const struct message_field user_event_fields[] = {
	WITHIN(user_event, id, 1, VS_USER_ID_MAX, -EBADMSG),
	ANY(user_event, kind),
	ANY(user_event, flags),
	TEXT(user_event, system),
	TEXT(user_event, name),
	TEXT(user_event, path),
	TEXT(user_event, spec),
	ANY(user_event, limited),
	TEXT(user_event, why),
	LIST(user_event, fields, n_fields, fields, user_field),
};
PART_LAYOUT(user_event, user_event);

static const struct message_field user_events_fields[] = {
	LIST(user_events, events, n, events, user_event),
};

/* The values fit in the records. */
static bool user_events_valid(const void *of)
{
	const struct message_user_events *m = of;

	for (size_t i = 0; i < m->n; i++) {
		if (user_event_n_values(&m->events[i]) > VS_USER_VALUES_MAX)
			return false;
	}
	return true;
}
MESSAGE_LAYOUT(user_events, .valid = user_events_valid);

static const struct message_field exit_cell_fields[] = {
	WITHIN(exit_cell, vcpu, 0, VS_THREADS_MAX - 1, -EBADMSG),
	WITHIN(exit_cell, isa, 1, 2, -EBADMSG),
	ANY(exit_cell, reason),
	ANY(exit_cell, count),
	ANY(exit_cell, kernel_ns),
	ANY(exit_cell, vmm_ns),
	ANY(exit_cell, max_ns),
	{AT(exit_cell, buckets), WIRE_AT(exit_cell, bucket), .form = FIELD_PAIRS,
	 .bytes = sizeof(uint64_t), .limit = VS_EXIT_BUCKETS,
	 .wire_count_at = offsetof(wire_exit_cell, n_bucket)},
};
PART_LAYOUT(exit_cell, exit_cell);

static const struct message_field exit_summary_fields[] = {
	ANY(exit_summary, vm),
	ANY(exit_summary, host_tsc),
	{ARRAY_ROW(exit_summary, cells, n_cells, cells), .form = FIELD_LIST,
	 .limit = VS_EXIT_CELLS_MAX, .flags = FIELD_ALLOCATED, .part = &message_exit_cell_layout},
};
MESSAGE_LAYOUT(exit_summary, );

static const struct message_field task_origin_fields[] = {
	WITHIN(task_origin, tid, 1, INT32_MAX, -EBADMSG),
	WITHIN(task_origin, tgid, 1, INT32_MAX, -EBADMSG),
	ANY(task_origin, seen),
	NOT_ABOVE(task_origin, began, seen),
	TEXT(task_origin, cgroup),
	TEXT(task_origin, vm),
	ANY(task_origin, vcpu_known),
	WITHIN_IF(task_origin, vcpu_known, vcpu, 0, VS_CPUS_MAX - 1, -E2BIG),
	ANY(task_origin, claimed),
	ANY(task_origin, uid),
};
PART_LAYOUT(task_origin, task_origin);

static const struct message_field task_origins_fields[] = {
	LIST(task_origins, tasks, n, tasks, task_origin),
};
MESSAGE_LAYOUT(task_origins, );
