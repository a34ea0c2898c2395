/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vCPU scheduling latency: for every vCPU the time in each state and how long it waited for a pCPU
 * whenever it wanted one (run delay), by what made it wait; for every pCPU how long vCPUs waited
 * there; and who ran instead.
 *
 * One wait is the unbroken time in `runnable` and `throttled` until the thread runs. A wait whose
 * beginning or end was not seen counts in the states, not as a wait.
 */
#ifndef TABLES_RUN_DELAY_H
#define TABLES_RUN_DELAY_H

#include "clock/histogram.h"
#include "host-collector/tables/figures_options.h"
#include "host-collector/model/model.h"

enum run_delay_cause {
	RUN_DELAY_WOKEN,     /* it had slept: wake-up to run */
	RUN_DELAY_PREEMPTED, /* it had run: preempted to run */
	RUN_DELAY_CAUSES,
};

/* Instead of a pid: all who held a pCPU less long than another in the same wait. */
enum { RUN_DELAY_OTHERS = 0 };

struct run_delay_vcpu {
	uint32_t vm, vcpu;
	int64_t state_ns[VCPU_STATE_COUNT];
	struct histogram waits[RUN_DELAY_CAUSES];
	uint64_t migrations; /* to another pCPU, between two times that it ran */
	bool seen;           /* anything of the above since the last run_delay_clear */

	/* The wait that goes on. */
	int64_t wait_ns;
	enum run_delay_cause cause;
	bool waiting, cause_known, ran;
	uint16_t ran_on;
};

struct run_delay_pcpu {
	uint16_t pcpu;
	uint32_t vm, vcpu;       /* only if per_vcpu */
	int64_t run_ns, wait_ns; /* of all vCPUs */
};

struct run_delay_holder {  /* a host task that held a pCPU which a vCPU wanted */
	uint32_t vm, vcpu; /* vcpu: only if per_vcpu */
	uint16_t pcpu;     /* only if per_pcpu */
	int32_t pid;       /* or RUN_DELAY_OTHERS */
	int64_t held_ns;
	uint64_t waits; /* spans of waiting in which it was the longest holder */
};

struct run_delay;

/* Subscribes to the model, which must not be fed any more once this is freed. With than_ns, shorter
 * waits are in the states only. NULL on ENOMEM. */
struct run_delay *run_delay_new(struct model *m, const struct figures_options *options);
/* Forgets all figures, but not what goes on. */
void run_delay_clear(struct run_delay *r);
void run_delay_free(struct run_delay *r);
/* 0, or -ENOMEM: something could not be counted. */
int run_delay_error(const struct run_delay *r);
/* The results so far: item number `index`, NULL past the last. Borrowed. Of more than 4096 vCPUs,
 * pCPUs or holders the least recently seen are forgotten. */
const struct run_delay_vcpu *run_delay_vcpu(const struct run_delay *r, size_t index);
const struct run_delay_pcpu *run_delay_pcpu(const struct run_delay *r, size_t index);
const struct run_delay_holder *run_delay_holder(const struct run_delay *r, size_t index);

#endif
