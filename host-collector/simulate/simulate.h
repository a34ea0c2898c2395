/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs a scenario and writes its recording and its truth file. */
#ifndef SIMULATE_SIMULATE_H
#define SIMULATE_SIMULATE_H

#include "host-collector/simulate/scenario.h"

struct simulate_options {
	const struct scenario *scenario;
	uint64_t seed;
	double loss;    /* probability that an event is lost, 0 to 1 */
	bool jobs;      /* also events of a user, with known pairs (jobs.h) */
	int64_t for_ns; /* minimum length of the run; 0: as long as the scenario takes */
	struct sim_pace pace;
	/* VMs, 1 to WORLD_VMS_MAX, and vCPUs of each, 1 to WORLD_VCPUS_MAX; 0: 1 and WORLD_VCPUS.
	 * A scenario with scenario_needs_second() needs two vCPUs. */
	uint32_t n_vms, n_vcpus;
	enum vm_protection protection; /* of the guests */
	const char *recording, *truth;
};

/* Returns 0, or -errno with one line in `why`. */
int simulate_run(const struct simulate_options *o, char *why, size_t why_bytes);

#endif
