/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Steal as a guest accounts it beside the run delay of the same vCPU as the host saw it, between
 * the first and the last reading of the guest's account. A reading is held against the vCPU's spans
 * at its own time, so both figures are of one span of time.
 *
 * A guest accounts in whole units (mostly 10 ms) and at its own ticks, so up to a unit and a tick
 * at either end is no contradiction. Stops, quotas of old kernels and sleeps in the host are no
 * steal by KVM's account, and so none here.
 */
#ifndef TABLES_STEAL_H
#define TABLES_STEAL_H

#include "host-collector/tables/figures_options.h"
#include "host-collector/model/model.h"

struct steal_vcpu {
	uint32_t vm, vcpu;
	uint16_t guest_cpu;
	bool clock;       /* the guest has a steal clock; without one it accounts nothing */
	uint64_t unit_ns; /* the guest accounts in whole ones */
	uint64_t readings;
	struct host_ns begin, end; /* first and last reading */
	int64_t accounted_ns, measured_ns;
	int64_t unknown_ns; /* what the vCPU did was not seen */
};

struct steal;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct steal *steal_new(struct model *m);
void steal_free(struct steal *s);
/* What follows counts from the last reading on. */
void steal_clear(struct steal *s);
/* Item number `index`, NULL past the last. Borrowed. One reading alone tells nothing. */
const struct steal_vcpu *steal_vcpu(const struct steal *s, size_t index);

#endif
