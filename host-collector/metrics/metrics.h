/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a monitoring system wants to know of each VM, as counters that only grow: the analyses that
 * the tables show, kept from the beginning. Of a fixed, small size: nothing in it is split by task,
 * vCPU, vector or any other thing that a guest can make more of.
 */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include "clock/histogram.h"
#include "host-collector/analyze/chain/chain.h"
#include "host-collector/analyze/stall/report.h"
#include "host-collector/tables/run_delay.h"

/* Exit reasons beyond these are summed as "other": KVM knows some 70, a VM meets a dozen. */
enum { METRICS_REASONS = 24, METRICS_REASON_NAME = 32 };

struct metrics_reason {
	char name[METRICS_REASON_NAME];
	uint64_t exits;
	int64_t handling_ns;
};

/* One VM's counters. */
struct metrics_vm {
	uint32_t vm;
	const char *name; /* as the VMM was started with; borrowed, not escaped */
	uint32_t vcpus;
	int64_t state_ns[VCPU_STATE_COUNT]; /* of all vCPUs */
	struct histogram delays[RUN_DELAY_CAUSES];
	struct histogram exits; /* time in KVM and the VMM */
	struct metrics_reason reasons[METRICS_REASONS + 1];
	size_t n_reasons;
	struct histogram interrupts[CHAIN_SOURCE_COUNT]; /* from source to handler */
	uint64_t interrupts_late, interrupts_lost;
	uint64_t incidents[VERDICT_COUNT];
	int64_t incident_ns[VERDICT_COUNT];
};

struct metrics;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct metrics *metrics_new(struct model *m);
void metrics_free(struct metrics *x);
/* After the last event. */
void metrics_finish(struct metrics *x);
/* A stall that was found. */
void metrics_incident(struct metrics *x, const struct incident *incident);
/* VM number `index` as it stands now: 0, -ENOENT past the last, -ENOMEM (also if something could
 * not be counted). metrics_vm_fini in any case. */
int metrics_vm_get(const struct metrics *x, size_t index, struct metrics_vm *out);
void metrics_vm_fini(struct metrics_vm *vm);

#endif
