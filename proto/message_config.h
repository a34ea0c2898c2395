/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The request of a host to an agent (Config) and the agent's answer (ConfigReply). Neither side
 * trusts the other: unpacking limits the sizes only. The agent checks the values against the
 * limits that the guest's owner set (guest-agent/limits.h).
 */
#ifndef PROTO_MESSAGE_CONFIG_H
#define PROTO_MESSAGE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "proto/message_config_classes.h"

enum {
	VS_TEXT_MAX = 128, /* names, versions, symbols; with the NUL */
	VS_CONFIG_TASKS_MAX = 8,
	VS_CONFIG_LIMITS_MAX = 16,
	VS_CONFIG_EVENTS_MAX = 16,
	VS_TASK_PATTERN_MAX = 17, /* 15 bytes of a name, "*" and NUL */
	VS_LOOK_WHEN_MAX = 256,   /* condition of looks, with the NUL */
	CONFIG_HANDLER_OVER_MAX_NS = 1000000000,
};

/* Returns the name of a class, for example "irqs". class: less than EVENT_CLASSES. */
const char *event_class_name(uint32_t class);

enum guest_level {
	GUEST_LEVEL_DETAIL = 1,
	/* A handler is aggregated (Heartbeat.aggregated) unless it takes at least handler_over_ns,
	 * another event occurs in it, or it is still running when the agent drains the rings. The
	 * handlers of the local timer and of function calls are always sent. */
	GUEST_LEVEL_SUMMARY = 2,
};

/* X(number, NAME, "name"): the fields of a Config. Bit 1 << number of `asks` selects a field. */
#define VS_CONFIG_FIELDS(X)                                                                        \
	X(0, CLASSES, "events")                                                                    \
	X(1, LEVEL, "level")                                                                       \
	X(2, HANDLER_OVER, "handlers-over")                                                        \
	X(3, SAMPLE_HZ, "sample-hz")                                                               \
	X(4, TASKS, "task-filter")                                                                 \
	X(5, EVENTS, "-e")                                                                         \
	X(6, LOOK, "look")

enum config_field {
#define X(number, NAME, ...) CONFIG_##NAME = number,
	VS_CONFIG_FIELDS(X)
#undef X
		CONFIG_FIELDS
};
enum { CONFIG_FIELDS_ALL = (1 << CONFIG_FIELDS) - 1 };

/* Why a field is not in force as requested. A newer agent may send other reasons. */
enum config_reason {
	CONFIG_REASON_OWNER = 1,       /* the guest's owner set a limit */
	CONFIG_REASON_UNSUPPORTED = 2, /* the agent or its kernel does not support it */
	CONFIG_REASON_BUDGET = 3,      /* the agent exceeded its budget of CPU or memory */
	CONFIG_REASON_INVALID = 4,     /* the value is invalid */
};

/* An event that a host asks for. The agent's kernel resolves it, if the guest's owner allows it. */
struct message_config_event {
	uint32_t kind; /* enum user_event_kind; not validated */
	char system[48], name[64];
	char filter[256]; /* an expression (proto/query/expr.h) over its fields; "": every hit */
	char fields[128]; /* names, separated by blanks; "": those for which there is room */
	char spec[256];   /* as the user wrote it */
};

struct message_config {
	uint32_t id;
	uint32_t asks;    /* bits of enum config_field; a newer host may set others */
	uint64_t classes; /* bits of enum event_class; a newer host may set others */
	uint32_t level;   /* enum guest_level; not validated */
	uint64_t handler_over_ns;
	uint32_t sample_hz;
	size_t n_tasks;
	/* Task names, or prefixes if the last byte is '*'. Longer ones are cut. */
	char tasks[VS_CONFIG_TASKS_MAX][VS_TASK_PATTERN_MAX];
	/* Only requested of an agent with FEATURE_EVENTS; absent in a reply, because UserEvents
	 * says what became of each. */
	size_t n_events;
	struct message_config_event events[VS_CONFIG_EVENTS_MAX];
	/* Only requested of an agent with FEATURE_LOOK. At each tick of this period (0: none), the
	 * agent takes the stack of what runs if the condition holds. The condition is an expression
	 * (bpf/chosen/look_condition.h) that the agent compiles. */
	uint64_t look_period_ns;
	char look_when[VS_LOOK_WHEN_MAX];
};

struct message_config_limit {
	uint32_t field, reason; /* enum config_field, enum config_reason; not validated */
	char text[VS_TEXT_MAX];
};

struct message_config_reply {
	uint32_t id; /* of the answered Config; 0: the agent changed its configuration itself */
	uint64_t time;
	struct message_config in_force;
	size_t n_limits;
	struct message_config_limit limits[VS_CONFIG_LIMITS_MAX];
};

#endif
