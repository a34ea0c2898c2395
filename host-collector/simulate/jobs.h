/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of a user with known pairs: the host hands jobs to the guest. The event `jobs:job_issue`
 * happens in QEMU's thread, on any CPU of the host. The event `jobs:job_done` happens on the guest
 * CPU with the number slot % CPUs, while that CPU runs. A slot has one job at a time. So the key
 * `slot` has the same value for many pairs, the key `job` for one pair only.
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

/* Describes the events in both streams, whose HELLO was sent, and plans the first jobs. tid: the
 * thread that issues them. All pointers are borrowed for the run. */
void jobs_init(struct sim_jobs *j, struct engine *e, struct sim_capture *host,
	       struct sim_capture *guest, struct sim_vcpu *vcpus, uint32_t n_vcpus, int32_t tid);
void jobs_fini(struct sim_jobs *j);

#endif
