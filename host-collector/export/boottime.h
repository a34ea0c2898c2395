/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The timeline's nanoseconds (CLOCK_MONOTONIC_RAW) to the host's CLOCK_BOOTTIME, which other tools
 * use: a chain of lines between the recording's clock samples, so that it follows NTP and never
 * runs back. Without samples the timeline's own time passes for it.
 */
#ifndef EXPORT_BOOTTIME_H
#define EXPORT_BOOTTIME_H

#include "clock/types.h"
#include "host-collector/engine/pipeline.h"

struct boottime_point {
	int64_t host_ns, boot_ns;
};

struct boottime {
	size_t n, at; /* at: the line used last */
	uint64_t suspended_ns;
	struct boottime_point *points;
};

/* p: has learned the recording's clocks. 0 or -ENOMEM; free with boottime_fini. */
int boottime_init(struct boottime *b, const struct pipeline *p);
void boottime_fini(struct boottime *b);
/* Never negative. */
uint64_t boottime_of(struct boottime *b, struct host_ns t);

#endif
