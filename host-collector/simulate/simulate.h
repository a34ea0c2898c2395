/* SPDX-License-Identifier: GPL-2.0-only */
/* A scenario in, a recording and the truth about it out. */
#ifndef SIMULATE_SIMULATE_H
#define SIMULATE_SIMULATE_H

#include "host-collector/simulate/scenario.h"

struct simulate_options {
	const struct scenario *scenario;
	uint64_t seed;
	double loss;    /* of each event, 0 to 1 */
	int64_t for_ns; /* how long at least; 0: as long as the scenario takes */
	struct sim_pace pace;
	const char *recording, *truth;
};

/* 0 or -errno; `why` says in one line what failed. */
int simulate_run(const struct simulate_options *o, char *why, size_t why_bytes);

#endif
