/* SPDX-License-Identifier: GPL-2.0-only */
/* The options that request a configuration from a guest's agent; shared by record and watch. */
#ifndef CLI_GUEST_OPTIONS_H
#define CLI_GUEST_OPTIONS_H

#include "host-collector/cli/options.h"
#include "proto/message_config.h"

struct guest_arguments {
	const char *events, *level, *task_filter; /* NULL: the agent keeps its own setting */
	uint64_t handlers_over_ns;                /* 0: the agent keeps its own threshold */
};

/* at: offset of a struct guest_arguments in the command's struct */
#define GUEST_OPTION_ROWS(at)                                                                      \
	{"guest-events",                                                                           \
	 OPTION_STRING,                                                                            \
	 (at) + offsetof(struct guest_arguments, events),                                          \
	 "LIST",                                                                                   \
	 "ask the agent for these only, beside task switches: wakeups, irqs, softirqs, "           \
	 "vectors, kernel-log; parted by commas (as the agent has it: all)",                       \
	 false},                                                                                   \
		{"guest-level",                                                                    \
		 OPTION_CHOICE,                                                                    \
		 (at) + offsetof(struct guest_arguments, level),                                   \
		 "detail|summary",                                                                 \
		 "summary: ask the agent to count handlers of devices' interrupts, softirqs and "  \
		 "reschedule interrupts that are short and wake nobody, instead of telling them "  \
		 "(as the agent has it: detail)",                                                  \
		 false},                                                                           \
		{"guest-handlers-over",                                                            \
		 OPTION_DURATION,                                                                  \
		 (at) + offsetof(struct guest_arguments, handlers_over_ns),                        \
		 "TIME",                                                                           \
		 "at --guest-level summary, handlers that take so long are told, at most 1s "      \
		 "(as the agent has it: 100us)",                                                   \
		 false},                                                                           \
	{                                                                                          \
		"guest-task-filter", OPTION_STRING,                                                \
			(at) + offsetof(struct guest_arguments, task_filter), "LIST",              \
			"ask the agent for these tasks only: NAME or BEGIN*, up to 8, parted by "  \
			"commas; of the others just that one of them runs",                        \
			false                                                                      \
	}

/* Makes the request for the agent. sample_hz: stack samples per second, or 0 to keep the agent's
 * own rate. Returns 0, or -EINVAL with one line in `why`. */
int guest_arguments_read(const struct guest_arguments *arguments, uint64_t sample_hz,
			 struct message_config *out, char *why, size_t why_bytes);

#endif
