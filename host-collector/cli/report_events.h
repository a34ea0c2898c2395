/* SPDX-License-Identifier: GPL-2.0-only */
/* The TABLEs of `vcpuscope report` that show events that the user names with -e: events, pairs,
 * top, dist, rate. */
#ifndef CLI_REPORT_EVENTS_H
#define CLI_REPORT_EVENTS_H

#include <stdio.h>

#include "host-collector/analyze/event/choices.h"
#include "host-collector/model/narrow.h"
#include "proto/program/options.h"

struct report_events_arguments {
	struct option_list events;
	const char *key, *detail, *by, *sum, *value;
	uint64_t lower_ns, every_ns;
	bool per_key, cycle;
};

/* at: offset of a struct report_events_arguments in the command's struct */
#define REPORT_EVENTS_OPTION_ROWS(at)                                                              \
	{.name = "event",                                                                          \
	 .letter = 'e',                                                                            \
	 .type = OPTION_LIST,                                                                      \
	 .offset = (at) + offsetof(struct report_events_arguments, events),                        \
	 .value = "EVENT,...",                                                                     \
	 .help = "with events, pairs, top, dist and rate: the events (docs/events.md); for "       \
		 "pairs: -e A -e B, and -e C for a second stage from B to C"},                     \
		{.name = "key",                                                                    \
		 .type = OPTION_STRING,                                                            \
		 .offset = (at) + offsetof(struct report_events_arguments, key),                   \
		 .value = "EXPR",                                                                  \
		 .help = "with pairs: the value that the events of a pair have in common "         \
			 "(default vcpu, or cpu if all are of one side)"},                         \
		{.name = "per-key",                                                                \
		 .type = OPTION_FLAG,                                                              \
		 .offset = (at) + offsetof(struct report_events_arguments, per_key),               \
		 .help = "with pairs: show a row for each key"},                                   \
		{.name = "cycle",                                                                  \
		 .type = OPTION_FLAG,                                                              \
		 .offset = (at) + offsetof(struct report_events_arguments, cycle),                 \
		 .help = "with pairs: add a last stage, from the last event to the first one"},    \
		{.name = "lower",                                                                  \
		 .type = OPTION_DURATION,                                                          \
		 .offset = (at) + offsetof(struct report_events_arguments, lower_ns),              \
		 .value = "10us",                                                                  \
		 .help = "with pairs: show the shortest pairs, if shorter than this, "             \
			 "instead of the longest"},                                                \
		{.name = "detail",                                                                 \
		 .type = OPTION_STRING,                                                            \
		 .offset = (at) + offsetof(struct report_events_arguments, detail),                \
		 .value = "-1ms,+1ms,samevcpu,...",                                                \
		 .help = "with pairs: show the events between the two events of each "             \
			 "shown pair, with -1ms and +1ms also up to 1 ms before and "              \
			 "after it; samevcpu, samecpu, sametask, samekey and hide<1ms "            \
			 "limit them (docs/pairs.md)"},                                            \
		{.name = "by",                                                                     \
		 .type = OPTION_STRING,                                                            \
		 .offset = (at) + offsetof(struct report_events_arguments, by),                    \
		 .value = "EXPR",                                                                  \
		 .help = "with top, dist and rate: show a row for each value of EXPR"},            \
		{.name = "sum",                                                                    \
		 .type = OPTION_STRING,                                                            \
		 .offset = (at) + offsetof(struct report_events_arguments, sum),                   \
		 .value = "EXPR",                                                                  \
		 .help = "with top: show the sum of EXPR, too, and sort the rows by it"},          \
		{.name = "value",                                                                  \
		 .type = OPTION_STRING,                                                            \
		 .offset = (at) + offsetof(struct report_events_arguments, value),                 \
		 .value = "EXPR",                                                                  \
		 .help = "with dist: show the distribution of EXPR"},                              \
	{                                                                                          \
		.name = "every", .type = OPTION_DURATION,                                          \
		.offset = (at) + offsetof(struct report_events_arguments, every_ns),               \
		.value = "10ms", .help = "with rate: the length of an interval (default 10ms)"     \
	}

/* The values of the other options of `report`. */
struct report_events_request {
	const char *what, *recording, *format, *output;
	uint64_t top; /* 0: all */
	uint64_t than_ns;
	const struct report_events_arguments *events;
	const struct narrow *narrow; /* the events to show */
};

/* The TABLEs of events that the user names; ended by NULL. */
extern const char *const report_events_names[];
/* Returns true if this TABLE is one of them. */
bool report_events_is(const char *table);
/* Reads the recording and writes the table. Prints errors on stderr. Returns the exit code. */
int report_events_run(const struct report_events_request *request);
/* Returns true if an option of these TABLEs is given. */
bool report_events_given(const struct report_events_arguments *a);

/* Replays the recording into a model to which all observers were added. Prints errors on stderr.
 * Returns 0 or -errno; -ECANCELED, without a message: see model_guests_missed(). */
int report_events_read(const struct report_events_request *request, struct model *m);
/* Writes the table of pairs. Prints errors on stderr. Returns 0 or -errno; -EINVAL: a wrong
 * option. */
int report_pairs_write(const struct report_events_request *request, struct event_choices *choices,
		       FILE *out);

/* Returns true if this TABLE is top, dist or rate. */
bool report_groups_is(const char *table);
/* Writes the table top, dist or rate, in the same way as report_pairs_write(). */
int report_groups_write(const struct report_events_request *request, struct event_choices *choices,
			FILE *out);

#endif
