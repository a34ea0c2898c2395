/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * At a guest's level summary: which handlers become no events but are counted. A device's
 * interrupt, softirq or reschedule interrupt that took less than the threshold and in which nothing
 * else happened: whatever a handler wakes, it is told with. The timer's and the calls' of other
 * CPUs are always told, for verdicts rest on them (ticks, who waited for whom).
 *
 * It looks at events that are in hand, so that none is told late: a handler that is under way when
 * they end is told. Cost: about 3 ns an event.
 */
#ifndef CAPTURE_HANDLER_SUMMARY_H
#define CAPTURE_HANDLER_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"
#include "proto/message.h"

struct handler_summary {
	uint64_t over_ns; /* 0: every handler is told */
	/* By enum event_class; running totals over all CPUs. */
	struct message_untold untold[EVENT_CLASSES];
};

/* `events` of one CPU, by seq, times in ns. The entries and exits that are not to be told get type
 * VS_EVENT_NONE, and are counted. */
void handler_summary_mark(struct handler_summary *s, struct vs_event *events, size_t n);

#endif
