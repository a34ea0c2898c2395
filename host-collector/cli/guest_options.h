/* SPDX-License-Identifier: GPL-2.0-only */
/* The options that request a configuration from a guest's agent; shared by record and watch. */
#ifndef CLI_GUEST_OPTIONS_H
#define CLI_GUEST_OPTIONS_H

#include "proto/program/options.h"
#include "proto/message_config.h"

struct guest_arguments {
	const char *events, *level, *task_filter; /* NULL: the agent keeps its own setting */
	uint64_t handlers_over_ns;                /* 0: the agent keeps its own threshold */
};

/* at: offset of a struct guest_arguments in the command's struct */
#define GUEST_OPTION_ROWS(at)                                                                           \
	{.name = "guest-events",                                                                        \
	 .type = OPTION_STRING,                                                                         \
	 .offset = (at) + offsetof(struct guest_arguments, events),                                     \
	 .value = "LIST",                                                                               \
	 .help = "comma-separated guest events to record besides task switches: wakeups, "              \
		 "irqs, softirqs, vectors, kernel-log (default: the agent's setting, normally "         \
		 "all)"},                                                                               \
		{.name = "guest-level",                                                                 \
		 .type = OPTION_CHOICE,                                                                 \
		 .offset = (at) + offsetof(struct guest_arguments, level),                              \
		 .value = "detail|summary",                                                             \
		 .help = "summary: the agent counts short handlers of device interrupts, softirqs and " \
			 "reschedule interrupts that wake no task, instead of sending each (default: "  \
			 "the agent's setting, normally detail)"},                                      \
		{.name = "guest-handlers-over",                                                         \
		 .type = OPTION_DURATION,                                                               \
		 .offset = (at) + offsetof(struct guest_arguments, handlers_over_ns),                   \
		 .value = "TIME",                                                                       \
		 .help = "with --guest-level summary: handlers that take at least this long are sent "  \
			 "one by one; at most 1s (default: the agent's setting, normally 100us)"},      \
	{                                                                                               \
		.name = "guest-task-filter", .type = OPTION_STRING,                                     \
		.offset = (at) + offsetof(struct guest_arguments, task_filter), .value = "LIST",        \
		.help = "comma-separated guest tasks to record, up to 8: NAME, or BEGIN* for all "      \
			"names that begin with BEGIN; of the other tasks, the agent records only that " \
			"one of them runs"                                                              \
	}

/* Makes the request for the agent. sample_hz: stack samples per second, or 0 to keep the agent's
 * own rate. Returns 0, or -EINVAL with one line in `why`. */
int guest_arguments_read(const struct guest_arguments *arguments, uint64_t sample_hz,
			 struct message_config *out, char *why, size_t why_bytes);

#endif
