/* SPDX-License-Identifier: GPL-2.0-only */
/* What this collector costs the host it observes. */
#ifndef UTIL_SELF_COST_H
#define UTIL_SELF_COST_H

#include <stdint.h>

struct self_cost {
	uint64_t cpu_time_ns; /* user and system, all threads */
	uint64_t rss_bytes;
};

/* Fields that cannot be read are 0. */
void self_cost_read(struct self_cost *out);

#endif
