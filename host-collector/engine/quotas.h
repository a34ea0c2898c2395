/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delivers readings of CPU quotas to a model in time order. A reading arrives when it is taken, but
 * events reach the model only after they are merged, so readings wait here for older events.
 */
#ifndef ENGINE_QUOTAS_H
#define ENGINE_QUOTAS_H

#include <stdbool.h>
#include <stddef.h>

#include "host-collector/model/model.h"

struct quotas {
	struct quota_reading *waiting; /* sorted by `until` */
	size_t n, capacity;
};

/* Frees the readings without delivering them. */
void quotas_fini(struct quotas *q);
/* Adds a copy of a reading. If the queue is full, delivers the oldest readings at once. Returns 0
 * or -ENOMEM. */
int quotas_add(struct quotas *q, struct model *m, const struct quota_reading *reading);
/* Returns true if a reading with `until` at or before `t` waits. */
static inline bool quotas_due(const struct quotas *q, struct host_ns t)
{
	return q->n && q->waiting[0].until.ns <= t.ns;
}
/* Delivers all readings with `until` at or before `t` to the model. */
void quotas_deliver(struct quotas *q, struct model *m, struct host_ns t);

#endif
