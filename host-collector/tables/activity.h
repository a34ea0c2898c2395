/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every vCPU did since the last look, for a screen that is redrawn every second: the share of
 * time in each state, exits, steal by the guest's account, the longest way of an interrupt to its
 * handler. What goes on now counts up to now; what is still unclear (a wait whose stack may come)
 * counts with the next look.
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
	bool steal_known; /* the guest accounts it, and was read since */
	int64_t steal_ns, steal_span_ns;
	bool latency_known;
	int64_t latency_ns; /* the worst */
};

struct activity;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct activity *activity_new(struct model *m);
void activity_free(struct activity *a);
/* Fills at most `max` rows by VM and vCPU, returns how many, and begins anew. -ENOMEM: something
 * could not be counted. */
long activity_look(struct activity *a, struct activity_row *rows, size_t max);

#endif
