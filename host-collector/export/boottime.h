/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Converts the timeline's nanoseconds (CLOCK_MONOTONIC_RAW) to the host's CLOCK_BOOTTIME, which
 * other tools use. The conversion interpolates between the clock samples of the recording, so it
 * follows NTP and never runs backwards. Without samples it returns the timeline's time.
 */
#ifndef EXPORT_BOOTTIME_H
#define EXPORT_BOOTTIME_H

#include "clock/types.h"
#include "host-collector/engine/pipeline.h"

struct boottime_point {
	int64_t host_ns, boot_ns;
};

/* A line between two points, so short that 64 bits suffice to interpolate on it. All zero: none. */
struct boottime_line {
	struct boottime_point begin;
	int64_t length_ns; /* of the timeline's time */
	int64_t gain_ns;   /* how much CLOCK_BOOTTIME gains in this time; may be negative */
	double gain_rate;  /* gain_ns / length_ns */
};

enum { BOOTTIME_LINES = 4 };

struct boottime {
	size_t n, at; /* at: index of the line that was used last */
	uint64_t suspended_ns;
	struct boottime_point *points;
	/* The lines that were used last: newer events alternate with spans, chains and interrupts
	 * that were held back. */
	struct boottime_line lines[BOOTTIME_LINES];
	unsigned last;   /* index in `lines` of the one that was used last */
	unsigned oldest; /* index in `lines` of the one to replace */
};

/* Copies the clock samples of `p`, which has read all of the recording's clocks. Returns 0 or
 * -ENOMEM; call boottime_fini() in both cases. */
int boottime_init(struct boottime *b, const struct pipeline *p);
void boottime_fini(struct boottime *b);
/* The part of boottime_of() that does not use the last line. Call that instead. */
uint64_t boottime_search(struct boottime *b, struct host_ns t);

/* Converts a time `ns` after the begin of the line. Rounds the gain down, as the division of the
 * products does: the estimate is at most 1 too large or too small. */
static inline uint64_t boottime_on_line(const struct boottime_line *l, int64_t ns)
{
	int64_t gain = (int64_t)((double)ns * l->gain_rate);
	const int64_t rest = ns * l->gain_ns - gain * l->length_ns;

	gain += (rest >= l->length_ns) - (rest < 0);
	return (uint64_t)(l->begin.boot_ns + ns + gain);
}

/* Returns the CLOCK_BOOTTIME of `t` in ns, 0 for times before boot. */
static inline uint64_t boottime_of(struct boottime *b, struct host_ns t)
{
	const struct boottime_line *l = &b->lines[b->last];
	const uint64_t ns = (uint64_t)t.ns - (uint64_t)l->begin.host_ns;

	return ns < (uint64_t)l->length_ns ? boottime_on_line(l, (int64_t)ns)
					   : boottime_search(b, t);
}

#endif
