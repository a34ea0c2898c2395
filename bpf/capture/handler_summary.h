/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides which handlers are counted instead of emitted, at a guest's level summary: handlers of a
 * device's interrupt, a softirq or a reschedule interrupt that took less than the threshold and
 * during which no other event was emitted. So a handler that wakes a task is always emitted.
 * Handlers of the timer and of function calls are always emitted, because verdicts use them.
 *
 * It decides about events that were already drained, so it delays no event. A handler that is still
 * running at the end of the drained events is emitted. Cost: about 3 ns per event.
 */
#ifndef CAPTURE_HANDLER_SUMMARY_H
#define CAPTURE_HANDLER_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"
#include "proto/message.h"

struct handler_summary {
	uint64_t over_ns; /* threshold; 0: every handler is emitted */
	/* counts of the handlers not emitted, by enum event_class, over all CPUs */
	struct message_aggregated aggregated[EVENT_CLASSES];
};

/* Counts the handlers that are not to be emitted and sets the type of their entries and exits to
 * VS_EVENT_NONE. `events`: of one CPU, ordered by seq, times in ns. */
void handler_summary_mark(struct handler_summary *s, struct vs_event *events, size_t n);

#endif
