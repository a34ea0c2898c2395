/* SPDX-License-Identifier: GPL-2.0-only */
/* The limits of chosen events, as both backends apply them (capture_event.h). */
#ifndef CAPTURE_EVENT_LIMITS_H
#define CAPTURE_EVENT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/capture/capture_event.h"

/* Returns the largest number of hits that become events in a window of 2^VS_USER_WINDOW_LOG2_NS ns,
 * at least 1. rate: hits per second; 0: the default. */
uint32_t event_limit_per_window(uint32_t rate);

/* Detects an event that has too many hits for a long time. All members 0: nothing was checked. */
struct event_flood {
	uint64_t checked_ms;
	struct capture_event_state checked; /* the state at that time */
	unsigned int flooded; /* checks in a row that found more hits above the limit than below */
};
/* Compares the state with that of the last check if this was a second ago or longer. Returns
 * whether most hits have been above the limit for 10 s. */
bool event_flood_check(struct event_flood *f, const struct capture_event_state *now,
		       uint64_t now_ms);

#endif
