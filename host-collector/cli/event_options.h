/* SPDX-License-Identifier: GPL-2.0-only */
/* The option -e of commands that capture: events of host and guest that the user chooses. */
#ifndef CLI_EVENT_OPTIONS_H
#define CLI_EVENT_OPTIONS_H

#include "bpf/chosen/chosen_events.h"
#include "proto/program/options.h"

struct event_arguments {
	struct option_list events;
};

/* at: offset of a struct event_arguments in the command's struct */
#define EVENT_OPTION_ROWS(at)                                                                      \
	{                                                                                          \
		.name = "event", .letter = 'e', .type = OPTION_LIST,                               \
		.offset = (at) + offsetof(struct event_arguments, events), .value = "EVENT",       \
		.help = "also capture this event of the host: SYSTEM:NAME (a tracepoint), "        \
			"kprobe:FUNCTION, kretprobe:FUNCTION, uprobe:SYMBOL@PATH or "              \
			"usdt:PROVIDER:NAME@PATH, optionally followed by /FILTER/ATTRIBUTES/; in " \
			"the VM's threads, or with the attribute untraced in all tasks. With the " \
			"prefix guest: an event of the guest, if the guest's owner allows it "     \
			"(docs/events.md); may be repeated"                                        \
	}

/* Resolves the events of the command line for this machine, and adds those of the guest to `guest`,
 * which are wrong with no_guest (--no-guest). `command` is its name, for messages. Sets *out, which
 * the caller frees; NULL: none were chosen. Returns an exit code (options.h), after a message to
 * stderr. */
int event_arguments_read(const struct event_arguments *a, const char *command, bool no_guest,
			 struct chosen_events **out, struct message_config *guest);

#endif
