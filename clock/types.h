/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One struct per clock, so that the compiler refuses to mix them. A converted time carries the
 * bound of its error: the true value lies in [t - err, t + err].
 */
#ifndef CLOCK_TYPES_H
#define CLOCK_TYPES_H

#include <stdint.h>

struct host_tsc {
	uint64_t ticks;
};
struct guest_tsc {
	uint64_t ticks;
};
struct kvmclock_ns {
	uint64_t ns;
};
/* Nanoseconds of the host's CLOCK_MONOTONIC_RAW: the unit of the timeline. */
struct host_ns {
	int64_t ns;
};
/* Nanoseconds of the CLOCK_MONOTONIC of whichever kernel stamped the event. */
struct monotonic_ns {
	uint64_t ns;
};
/* Nanoseconds of perf's clock (sched_clock) of whichever kernel stamped the event. */
struct perf_ns {
	uint64_t ns;
};
/* Nanoseconds since 1970 of whichever kernel says so. */
struct realtime_ns {
	uint64_t ns;
};

struct host_time {
	struct host_ns t;
	uint64_t err_ns;
};

/* What a guest's kernel prints before a log line, and in which of its boots (0: the first). */
struct dmesg_time {
	uint64_t ns, err_ns;
	uint32_t boot;
};

#endif
