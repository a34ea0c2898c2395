/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One struct per clock, so the compiler refuses to mix them. A converted time has a bound: the
 * true value lies within [t - err, t + err].
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
/* Nanoseconds of the host's CLOCK_MONOTONIC_RAW, the clock of the timeline. */
struct host_ns {
	int64_t ns;
};
/* Nanoseconds of CLOCK_MONOTONIC of the kernel that stamped the event. */
struct monotonic_ns {
	uint64_t ns;
};
/* Nanoseconds since 1970 (CLOCK_REALTIME) of the kernel that provided the time. */
struct realtime_ns {
	uint64_t ns;
};

struct host_time {
	struct host_ns t;
	uint64_t err_ns;
};

/* The stamp of a line of a guest's kernel log, and the boot that it belongs to (0: the first). */
struct dmesg_time {
	uint64_t ns, err_ns;
	uint32_t boot;
};

#endif
