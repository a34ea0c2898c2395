/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of `record` that take stacks only while a condition holds. */
#ifndef CLI_LOOK_OPTIONS_H
#define CLI_LOOK_OPTIONS_H

#include "bpf/capture/capture_look.h"
#include "proto/message_config.h"
#include "proto/program/options.h"

struct look_arguments {
	uint64_t period_ns, guest_period_ns; /* 0: none */
	const char *when, *guest_when;       /* NULL: none */
};

/* at: offset of a struct look_arguments in the command's struct */
#define LOOK_OPTION_ROWS(at)                                                                          \
	{.name = "look",                                                                              \
	 .type = OPTION_DURATION,                                                                     \
	 .offset = (at) + offsetof(struct look_arguments, period_ns),                                 \
	 .value = "PERIOD",                                                                           \
	 .min = CAPTURE_LOOK_PERIOD_MIN_NS,                                                           \
	 .max = CAPTURE_LOOK_PERIOD_MAX_NS,                                                           \
	 .help = "with --when: at each tick of this period (1ms to 1s), take the stack of the "       \
		 "VM's thread that runs on a CPU, if the condition holds there"},                     \
		{.name = "when",                                                                      \
		 .type = OPTION_STRING,                                                               \
		 .offset = (at) + offsetof(struct look_arguments, when),                              \
		 .value = "EXPR",                                                                     \
		 .help = "the condition of --look: an expression with the numbers of events on this " \
			 "CPU since the last tick (sched_switch, kvm_exit, ...; docs/events.md), "    \
			 "and with cpu, tid, pid and comm"},                                          \
		{.name = "guest-look",                                                                \
		 .type = OPTION_DURATION,                                                             \
		 .offset = (at) + offsetof(struct look_arguments, guest_period_ns),                   \
		 .value = "PERIOD",                                                                   \
		 .min = CAPTURE_LOOK_PERIOD_MIN_NS,                                                   \
		 .max = CAPTURE_LOOK_PERIOD_MAX_NS,                                                   \
		 .help = "as --look, for the guest's tasks; the guest's owner limits the period"},    \
	{                                                                                             \
		.name = "guest-when", .type = OPTION_STRING,                                          \
		.offset = (at) + offsetof(struct look_arguments, guest_when), .value = "EXPR",        \
		.help = "the condition of --guest-look, with the events of the guest CPU"             \
	}

/* Returns whether the user asked for looks at the host's threads. */
bool look_arguments_any(const struct look_arguments *a);
/* Compiles the host's condition to *out, and adds the guest's to `guest`. Sets out->period_ns to 0
 * if the user asked for no looks at the host's threads. Returns an exit code (options.h), after a
 * message to stderr. */
int look_arguments_read(const struct look_arguments *a, struct capture_look *out,
			struct message_config *guest);

#endif
