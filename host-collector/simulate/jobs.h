/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of a user with known pairs: the host hands jobs to the guest. `jobs:job_issue` happens on
 * any CPU of the host, in QEMU's thread, `jobs:job_done` on the guest CPU slot % CPUs while it
 * runs. A slot has one job at a time, so `slot` is a key that comes again, and `job` one that does
 * not.
 */
#ifndef SIMULATE_JOBS_H
#define SIMULATE_JOBS_H

#include "host-collector/simulate/vcpu.h"

enum { JOB_SLOTS = 8 };

struct sim_job {
	int64_t begin, end;
	uint32_t slot;
	bool issue_delivered, done_delivered;
};

struct sim_jobs {
	struct engine *engine;
	struct sim_capture *host, *guest;
	struct sim_vcpu *vcpus;
	uint32_t n_vcpus;
	int32_t tid;
	struct job_slot {
		struct sim_jobs *jobs;
		uint32_t slot;
		size_t job; /* in progress */
	} slots[JOB_SLOTS];
	struct sim_job *done; /* by number; end 0: not finished */
	size_t n, capacity;
};

/* Describes the events in both streams, whose HELLO was sent, and plans the first jobs. tid: who
 * issues them. All pointers are borrowed for the run. */
void jobs_init(struct sim_jobs *j, struct engine *e, struct sim_capture *host,
	       struct sim_capture *guest, struct sim_vcpu *vcpus, uint32_t n_vcpus, int32_t tid);
void jobs_fini(struct sim_jobs *j);

#endif
