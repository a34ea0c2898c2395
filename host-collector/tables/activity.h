/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts what each vCPU did since the previous reading, for a screen that is redrawn every second:
 * time in each state, VM-exits, steal as the guest reports it, and the longest time from the source
 * of an interrupt to its handler.
 *
 * The current span counts up to now. While an earlier span of the vCPU is still held back (a stack
 * may follow), its time and that of the current span count in a later reading.
 */
#ifndef TABLES_ACTIVITY_H
#define TABLES_ACTIVITY_H

#include "host-collector/model/model.h"

struct activity_row {
	uint32_t vm, vcpu;
	int32_t tid;
	enum vcpu_state now;
	int64_t state_ns[VCPU_STATE_COUNT];
	uint64_t exits;
	bool steal_known; /* the guest has a steal clock, and two of its readings were placed */
	int64_t steal_ns, steal_span_ns;
	bool latency_known;
	int64_t latency_ns; /* the longest, ns */
};

struct activity;

/* Subscribes to the model. The caller must not feed the model after activity_free(). Returns
 * NULL on ENOMEM. */
struct activity *activity_new(struct model *m);
void activity_free(struct activity *a);
/* Fills at most `max` rows, by VM and vCPU, and starts the next interval. Returns the number of
 * rows, or -ENOMEM if something could not be counted. */
long activity_look(struct activity *a, struct activity_row *rows, size_t max);

#endif
