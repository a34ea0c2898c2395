/* SPDX-License-Identifier: GPL-2.0-only */
/* Measures the resources that this process uses. */
#ifndef PROTO_SELF_COST_H
#define PROTO_SELF_COST_H

#include <stdint.h>

struct self_cost {
	uint64_t cpu_time_ns; /* user and system time of all threads */
	uint64_t rss_bytes;   /* resident now */
};

/* Reads the current values. Sets a field to 0 if it cannot be read. */
void self_cost_read(struct self_cost *out);
/* Does the same, but reads the CPU time at most every 50 ms and the memory at most every second, in
 * each thread. In between it gives the last values. */
void self_cost_recent(struct self_cost *out);

#endif
