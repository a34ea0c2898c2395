/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table `steal`: compares the steal that a guest reports with the run delay of the same vCPU
 * that the host observed, between the first and the last reading of the guest's steal counter. Each
 * reading is compared with the vCPU's spans at the time of the reading, so both values cover the
 * same time.
 *
 * A guest counts steal in whole units (mostly 10 ms) and at its own ticks, so both ends may differ
 * by a unit and a tick. KVM does not count stops, throttling on old kernels and sleeps in the host
 * as steal; this table does not count stops and sleeps as run delay either.
 */
#ifndef TABLES_STEAL_H
#define TABLES_STEAL_H

#include "host-collector/tables/analysis.h"
#include "host-collector/model/model.h"

struct steal_vcpu {
	uint32_t vm, vcpu;
	uint16_t guest_cpu;
	bool clock;       /* the guest has a steal clock; without one it counts nothing */
	uint64_t unit_ns; /* unit in which the guest counts */
	uint64_t readings;
	struct host_ns begin, end; /* times of the first and the last reading */
	int64_t accounted_ns, measured_ns;
	int64_t unknown_ns; /* time in which the vCPU's state is unknown */
};

struct steal;

/* Takes no options. After clear(), the last reading is the first of the next interval. */
extern const struct analysis steal_analysis;
/* Returns vCPU number `index`, NULL past the last. Borrowed. Leaves out vCPUs with fewer than
 * two readings. */
const struct steal_vcpu *steal_vcpu(const struct steal *s, size_t index);

#endif
