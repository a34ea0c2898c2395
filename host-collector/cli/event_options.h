/* SPDX-License-Identifier: GPL-2.0-only */
/* The option -e of commands that capture: events of host and guest that the user chooses. */
#ifndef CLI_EVENT_OPTIONS_H
#define CLI_EVENT_OPTIONS_H

#include "bpf/chosen/chosen_events.h"
#include "host-collector/analyze/event/pair_definition.h"
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

/* Resolves the events of the command line for this machine, and adds those of the guest to `guest`.
 * Events of the guest are wrong with no_guest (--no-guest). command: the name of the command, for
 * messages. Sets *out, which the caller frees; NULL: none were chosen. Returns an exit code
 * (options.h), after a message to stderr. */
int event_arguments_read(const struct event_arguments *a, const char *command, bool no_guest,
			 struct chosen_events **out, struct message_config *guest);

/* Texts of single events, as their descriptions have them (message_user_event.spec). */
struct event_texts {
	size_t n;
	char items[VS_USER_EVENTS_MAX + VS_CONFIG_EVENTS_MAX][256];
};

/* Also captures the events of the pairs, in the same way as event_arguments_read(). Leaves out the
 * events of the catalogue, which are captured anyway, and those that `a` chooses. *events may be
 * NULL; the caller frees it. `added` gets their texts. Returns an exit code, after a message to
 * stderr. */
int event_arguments_add_pairs(const struct event_arguments *a, const char *command,
			      const struct pair_definition *pairs, size_t n, bool no_guest,
			      struct chosen_events **events, struct message_config *guest,
			      struct event_texts *added);

#endif
