/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups events by the value of an expression, the key of their choice. For each group it computes
 * the number of events, and the number in each interval of time. It also computes the sum and the
 * distribution of a second expression, the value of the choice.
 */
#ifndef EVENT_EVENT_GROUPS_H
#define EVENT_EVENT_GROUPS_H

#include "clock/histogram.h"
#include "host-collector/analyze/event/pairs.h"

enum { EVENT_GROUPS_ROWS_MAX = 8192 };

struct event_group {
	size_t choice;
	/* Type EXPR_NONE: the group of all events for which there was no row. */
	struct pair_key key;
	uint64_t count;
	uint64_t sum; /* of the values; saturates */
	/* Of the values; with intervals: of the number of events in an interval. */
	struct histogram values;
	/* With intervals: the current interval and the one with the most events, and the number of
	 * events in each. */
	int64_t interval, busiest;
	uint64_t in_interval, in_busiest;
};

struct event_groups_options {
	bool values;                 /* the choices have values */
	int64_t every_ns;            /* length of an interval; 0: none */
	const struct narrow *narrow; /* the events that it selects; NULL: all. Borrowed. */
};

struct event_groups;

/* Subscribes to the model; `choices`, whose keys are set, is borrowed. Returns NULL on ENOMEM. */
struct event_groups *event_groups_new(struct model *m, const struct event_choices *choices,
				      const struct event_groups_options *options);
void event_groups_free(struct event_groups *g); /* NULL is allowed */
/* Closes the intervals; call it after model_finish(). Returns 0 or -ENOMEM. */
int event_groups_finish(struct event_groups *g);
/* Returns group number i, in no order, or NULL past the last. */
const struct event_group *event_groups_get(const struct event_groups *g, size_t i);

struct event_groups_limits {
	uint64_t without_key, without_value, negative; /* events that were left out */
	uint64_t keys_joined;                          /* events whose key had no row */
};
struct event_groups_limits event_groups_limits_get(const struct event_groups *g);

#endif
