/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables `vcpu`, `pcpu` and `culprits`: scheduling latency of vCPUs. For each vCPU they show
 * the time in each state and its waits for a pCPU (run delay) by cause. For each pCPU they show how
 * long vCPUs waited for it, and which tasks ran instead.
 *
 * One wait is the unbroken time in `runnable` and `throttled` until the thread runs. A wait whose
 * begin or end was not observed counts in the states, not as a wait.
 */
#ifndef TABLES_RUN_DELAY_H
#define TABLES_RUN_DELAY_H

#include "clock/histogram.h"
#include "host-collector/tables/analysis.h"
#include "host-collector/model/model.h"

enum run_delay_cause {
	RUN_DELAY_WOKEN,     /* from wake-up to run */
	RUN_DELAY_PREEMPTED, /* from preemption to run */
	RUN_DELAY_CAUSES,
};

/* Values that stand in the place of a pid. RUN_DELAY_OTHERS: all tasks that are not kept
 * individually: further holders of a wait with more than 64 holders, and holders that newer ones
 * replaced. RUN_DELAY_QUOTA: the vCPU's own CPU quota. */
enum { RUN_DELAY_OTHERS = 0, RUN_DELAY_QUOTA = -1 };

struct run_delay_vcpu {
	uint32_t vm, vcpu;
	int64_t state_ns[VCPU_STATE_COUNT];
	struct histogram waits[RUN_DELAY_CAUSES];
	uint64_t migrations; /* moves to another pCPU between two runs */
	bool seen;           /* counted anything since the last run_delay_clear() */

	/* The wait in progress. */
	int64_t wait_ns;
	enum run_delay_cause cause;
	bool waiting, cause_known, ran;
	uint16_t ran_on;
};

struct run_delay_pcpu {
	uint16_t pcpu;
	uint32_t vm, vcpu;       /* only if per_vcpu */
	int64_t run_ns, wait_ns; /* time that vCPUs ran there; time that they waited for it */
};

struct run_delay_holder {  /* a host task that held a pCPU for which a vCPU waited */
	uint32_t vm, vcpu; /* vcpu: only if per_vcpu */
	uint16_t pcpu;     /* only if per_pcpu */
	int32_t pid;       /* or RUN_DELAY_OTHERS, RUN_DELAY_QUOTA */
	uint32_t quota;  /* RUN_DELAY_QUOTA: number of its cgroup (model_cgroup_of()); 0: unknown */
	int64_t held_ns; /* RUN_DELAY_QUOTA: time without quota */
	uint64_t waits;  /* spans of waiting in which it held the pCPU */
};

struct run_delay;

/* With than_ns, shorter waits count in the states only. clear() keeps waits in progress. */
extern const struct analysis run_delay_analysis;
/* Each returns item number `index`, NULL past the last. Borrowed. Keeps 4096 vCPUs, pCPUs and
 * holders each; further ones replace the least recently seen, whose time as holders then counts as
 * RUN_DELAY_OTHERS. */
const struct run_delay_vcpu *run_delay_vcpu(const struct run_delay *r, size_t index);
const struct run_delay_pcpu *run_delay_pcpu(const struct run_delay *r, size_t index);
const struct run_delay_holder *run_delay_holder(const struct run_delay *r, size_t index);

#endif
