/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of `vcpuscope report` that show events that the user names by -e: events. */
#ifndef CLI_REPORT_EVENTS_H
#define CLI_REPORT_EVENTS_H

#include "host-collector/model/narrow.h"
#include "proto/program/options.h"

struct report_events_arguments {
	struct option_list events;
};

/* at: offset of a struct report_events_arguments in the command's struct */
#define REPORT_EVENTS_OPTION_ROWS(at)                                                              \
	{                                                                                          \
		.name = "event", .letter = 'e', .type = OPTION_LIST,                               \
		.offset = (at) + offsetof(struct report_events_arguments, events),                 \
		.value = "EVENT,...",                                                              \
		.help = "with TABLE events: the events to show (docs/events.md)",                  \
	}

/* What the other options of `report` say. */
struct report_events_request {
	const char *what, *recording, *format, *output;
	uint64_t top; /* 0: all */
	const struct report_events_arguments *events;
	const struct narrow *narrow; /* the events to show */
};

/* Returns true if this TABLE is one of events that the user names. */
bool report_events_is(const char *table);
/* Reads the recording and writes the table. Says what is wrong on stderr. Returns the exit code. */
int report_events_run(const struct report_events_request *request);

#endif
