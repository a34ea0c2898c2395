/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps counters of each VM for a monitoring system. The counters only grow: they come from the
 * analyses of the tables, which are never cleared. Their size is small and fixed: nothing is split
 * by task, vCPU, vector or anything else whose number a guest can increase.
 */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include "clock/histogram.h"
#include "host-collector/analyze/chain/chain.h"
#include "host-collector/analyze/stall/report.h"
#include "host-collector/tables/run_delay.h"

/* Further exit reasons are summed as "other". KVM has about 70 reasons; a VM causes about a
 * dozen. */
enum { METRICS_REASONS = 24, METRICS_REASON_NAME = 32 };

struct metrics_reason {
	char name[METRICS_REASON_NAME];
	uint64_t exits;
	int64_t handling_ns;
};

/* One VM's counters. */
struct metrics_vm {
	uint32_t vm;
	/* VM name that the VMM was started with; borrowed, not escaped. NULL: a sum of VMs. */
	const char *name;
	uint32_t vcpus;
	int64_t state_ns[VCPU_STATE_COUNT]; /* of all vCPUs */
	struct histogram delays[RUN_DELAY_CAUSES];
	struct histogram exits; /* time in KVM and the VMM */
	struct metrics_reason reasons[METRICS_REASONS + 1];
	size_t n_reasons;
	struct histogram interrupts[CHAIN_SOURCE_COUNT]; /* from source to handler */
	struct histogram stages[CHAIN_STAGE_COUNT];      /* of an interrupt, of all sources */
	uint64_t interrupts_late, interrupts_lost;
	uint64_t incidents[VERDICT_COUNT];
	int64_t incident_ns[VERDICT_COUNT];
};

/* Why pairs, or single events of them, are not in the histogram. */
enum metrics_uncounted {
	METRICS_UNPAIRED,
	METRICS_INCOMPLETE,
	METRICS_AMBIGUOUS,
	METRICS_UNCOUNTED_KINDS,
};

/* The counts of a pair of events that the configuration names; borrowed. */
struct metrics_pair {
	const char *name;
	const struct histogram *times;
	uint64_t over; /* number of pairs that took at least the limit */
	uint64_t uncounted[METRICS_UNCOUNTED_KINDS];
};

struct metrics;

/* Subscribes to the model. joined: interrupt chains of this model whose joins are shared
 * (chains_share), or NULL. The caller must not feed the model after metrics_free(). Returns NULL on
 * ENOMEM. */
struct metrics *metrics_new(struct model *m, struct chains *joined);
void metrics_free(struct metrics *x);
/* Counts the chains that are still open; call it after the last event. If the chains are shared,
 * chains_finish() of `joined` counts them. */
void metrics_finish(struct metrics *x);
/* Counts an incident, unless it is healthy. */
void metrics_incident(struct metrics *x, const struct incident *incident);
/* Copies the current counters of VM number `index`. Returns 0, -ENOENT past the last, or -ENOMEM
 * (also if something could not be counted). Call metrics_vm_fini() in each case. */
int metrics_vm_get(const struct metrics *x, size_t index, struct metrics_vm *out);
void metrics_vm_fini(struct metrics_vm *vm);
/* Adds the counters of `from`, and its vCPUs, to a sum; all zeros are an empty one. Returns 0 or
 * -ENOMEM. Call metrics_vm_fini() for the sum. */
int metrics_vm_add(struct metrics_vm *to, const struct metrics_vm *from);

#endif
