/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/record.h"

#include <errno.h>
#include <string.h>

/* A struct that may end in an array of which only the beginning travels. */
struct record_shape {
	size_t fixed;  /* bytes before the array, or all */
	size_t member; /* of the array; 0: there is none */
	size_t limit;  /* members at most */
};

#define WHOLE(field)                                                                               \
	{                                                                                          \
		offsetof(struct guest_record, field) + sizeof(((struct guest_record *)0)->field),  \
			0, 0                                                                       \
	}
#define ENDS_IN(array)                                                                             \
	{                                                                                          \
		offsetof(struct guest_record, array),                                              \
			sizeof(((struct guest_record *)0)->array[0]),                              \
			sizeof(((struct guest_record *)0)->array) /                                \
				sizeof(((struct guest_record *)0)->array[0])                       \
	}

static const struct record_shape shapes[] = {
	[RECORD_HELLO] = ENDS_IN(hello.cpus),
	[RECORD_BATCH] = ENDS_IN(batch.events),
	[RECORD_HEARTBEAT] = ENDS_IN(heartbeat.steal.cpus),
	[RECORD_ECHO_REPLY] = WHOLE(echo_reply),
	[RECORD_CLOCK_SAMPLE] = WHOLE(clock_sample),
	[RECORD_KERNEL_LOG] = ENDS_IN(kernel_log.lines),
	[RECORD_STACK] = ENDS_IN(stack.frames),
	[RECORD_OBSERVATION] = WHOLE(observation),
	[RECORD_NOTE] = WHOLE(note),
	[RECORD_STATS] = WHOLE(stats),
	[RECORD_DOWN] = WHOLE(down),
	[RECORD_CONFIG_REPLY] = WHOLE(config_reply),
	[RECORD_UNKNOWN] = ENDS_IN(unknown.bytes),
	[RECORD_UNKNOWN_FRAME] = WHOLE(unknown_frame),
};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static size_t record_members(const struct guest_record *r)
{
	switch (r->head.kind) {
	case RECORD_HELLO:
		return r->hello.n_cpus;
	case RECORD_BATCH:
		return r->batch.n_events;
	case RECORD_HEARTBEAT:
		return r->heartbeat.steal.n_cpus;
	case RECORD_KERNEL_LOG:
		return r->kernel_log.n_lines;
	case RECORD_STACK:
		return r->stack.n_frames;
	case RECORD_UNKNOWN:
		return r->unknown.n;
	default:
		return 0;
	}
}

size_t record_bytes(const struct guest_record *r)
{
	const struct record_shape *shape = &shapes[r->head.kind];

	return shape->fixed + shape->member * record_members(r);
}

/* A bool of foreign memory may hold any byte; reading it as a bool would be undefined. */
static void bool_clean(bool *b)
{
	uint8_t byte;

	memcpy(&byte, b, 1);
	*b = byte != 0;
}

#define TEXT_END(text) ((text)[sizeof(text) - 1] = 0)

static void record_clean(struct guest_record *r)
{
	switch (r->head.kind) {
	case RECORD_HELLO:
		TEXT_END(r->hello.program_version);
		TEXT_END(r->hello.kernel_release);
		TEXT_END(r->hello.boot_id);
		bool_clean(&r->hello.dmesg.known);
		break;
	case RECORD_HEARTBEAT:
		bool_clean(&r->heartbeat.dmesg.known);
		bool_clean(&r->heartbeat.pvclock.known);
		bool_clean(&r->heartbeat.steal.known);
		bool_clean(&r->heartbeat.steal.clock);
		break;
	case RECORD_KERNEL_LOG:
		for (size_t i = 0; i < r->kernel_log.n_lines; i++)
			TEXT_END(r->kernel_log.lines[i].text);
		break;
	case RECORD_STACK:
		for (size_t i = 0; i < r->stack.n_frames; i++) {
			TEXT_END(r->stack.frames[i].symbol);
			TEXT_END(r->stack.frames[i].module);
			bool_clean(&r->stack.frames[i].kernel);
		}
		break;
	case RECORD_CONFIG_REPLY:
		for (size_t i = 0; i < VS_CONFIG_TASKS_MAX; i++)
			TEXT_END(r->config_reply.in_force.tasks[i]);
		for (size_t i = 0; i < VS_CONFIG_LIMITS_MAX; i++)
			TEXT_END(r->config_reply.limits[i].text);
		break;
	case RECORD_NOTE:
		TEXT_END(r->note.text);
		break;
	case RECORD_STATS:
		bool_clean(&r->stats.session.hello_known);
		bool_clean(&r->stats.session.refusing);
		break;
	default:
		break;
	}
}

int record_check(struct guest_record *r, size_t bytes)
{
	const struct record_shape *shape;
	size_t members;

	if (bytes < sizeof(r->head) || !r->head.kind || r->head.kind >= N_SHAPES)
		return -EPROTO;
	shape = &shapes[r->head.kind];
	if (bytes < shape->fixed)
		return -EPROTO;
	members = record_members(r);
	if (members > shape->limit || bytes != shape->fixed + members * shape->member)
		return -EPROTO;
	if (r->head.kind == RECORD_BATCH && r->batch.cpu >= VS_CPUS_MAX)
		return -EPROTO;
	if (r->head.kind == RECORD_CONFIG_REPLY &&
	    (r->config_reply.n_limits > VS_CONFIG_LIMITS_MAX ||
	     r->config_reply.in_force.n_tasks > VS_CONFIG_TASKS_MAX))
		return -EPROTO;
	record_clean(r);
	return 0;
}
