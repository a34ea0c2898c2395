/* SPDX-License-Identifier: GPL-2.0-only */
/* Measures the agent's own use of CPU and memory. */
#ifndef AGENT_SELF_STATS_H
#define AGENT_SELF_STATS_H

#include <stdint.h>

struct self_stats {
	uint64_t cpu_time_ns; /* user and system, all threads */
	uint64_t rss_bytes;   /* resident now, including the rings */
};

/* Returns 0 or -errno. */
int self_stats_read(struct self_stats *out);

#endif
