/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a host may ask of a guest's agent (Config), and what the agent answers (ConfigReply). Both
 * come from a peer that is not trusted: values are bounded when unpacked, and what they mean is
 * decided by the guest's owner (guest-agent/limits.h).
 */
#ifndef PROTO_MESSAGE_CONFIG_H
#define PROTO_MESSAGE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "proto/message_config_classes.h"

enum {
	VS_TEXT_MAX = 128, /* names, versions, symbols; with the final NUL */
	VS_CONFIG_TASKS_MAX = 8,
	VS_CONFIG_LIMITS_MAX = 16,
	VS_TASK_PATTERN_MAX = 17, /* 15 bytes of a name, "*", NUL */
	CONFIG_HANDLER_OVER_MAX_NS = 1000000000,
};

/* "irqs"; class: less than EVENT_CLASSES. */
const char *event_class_name(uint32_t class);

enum guest_level {
	GUEST_LEVEL_DETAIL = 1,
	/* A handler becomes events only if it takes handler_over_ns, or if something else happens
	 * in it, or if it is under way when the agent looks; the others are counted
	 * (Heartbeat.untold). The local timer's and the function calls' are always told. */
	GUEST_LEVEL_SUMMARY = 2,
};

/* X(number, NAME, "name"): the fields of a Config; 1 << number is a bit of `asks`. */
#define VS_CONFIG_FIELDS(X)                                                                        \
	X(0, CLASSES, "events")                                                                    \
	X(1, LEVEL, "level")                                                                       \
	X(2, HANDLER_OVER, "handlers-over")                                                        \
	X(3, SAMPLE_HZ, "sample-hz")                                                               \
	X(4, TASKS, "task-filter")

enum config_field {
#define X(number, NAME, ...) CONFIG_##NAME = number,
	VS_CONFIG_FIELDS(X)
#undef X
		CONFIG_FIELDS
};
enum { CONFIG_FIELDS_ALL = (1 << CONFIG_FIELDS) - 1 };

/* Why a field is not in force as it was asked for. A newer agent may know others. */
enum config_reason {
	CONFIG_REASON_OWNER = 1,       /* the guest's owner set a limit */
	CONFIG_REASON_UNSUPPORTED = 2, /* this agent, or its kernel, cannot */
	CONFIG_REASON_BUDGET = 3,      /* the agent's CPU or memory budget was used up */
	CONFIG_REASON_INVALID = 4,     /* the value has no meaning */
};

struct message_config {
	uint32_t id;
	uint32_t asks;    /* bits of enum config_field; a newer host may set others */
	uint64_t classes; /* bits of enum event_class; a newer host may set others */
	uint32_t level;   /* enum guest_level; not checked */
	uint64_t handler_over_ns;
	uint32_t sample_hz;
	size_t n_tasks;
	/* Task names, or beginnings if the last byte is '*'. Longer ones are cut. */
	char tasks[VS_CONFIG_TASKS_MAX][VS_TASK_PATTERN_MAX];
};

struct message_config_limit {
	uint32_t field, reason; /* enum config_field, enum config_reason; not checked */
	char text[VS_TEXT_MAX];
};

struct message_config_reply {
	uint32_t id; /* of the Config it is about; 0: something changed by itself */
	uint64_t time;
	struct message_config in_force;
	size_t n_limits;
	struct message_config_limit limits[VS_CONFIG_LIMITS_MAX];
};

#endif
