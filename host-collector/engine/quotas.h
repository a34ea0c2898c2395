/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Readings of CPU quotas on their way to a model: they arrive when they were taken, events when
 * they have been merged, and the model wants a reading once it knows what happened before it.
 */
#ifndef ENGINE_QUOTAS_H
#define ENGINE_QUOTAS_H

#include <stdbool.h>
#include <stddef.h>

#include "host-collector/model/model.h"

struct quotas {
	struct quota_reading *waiting; /* in time order of `until` */
	size_t n, capacity;
};

/* Drops what waits. */
void quotas_fini(struct quotas *q);
/* Copied. When too many wait the oldest goes to the model at once. 0 or -ENOMEM. */
int quotas_add(struct quotas *q, struct model *m, const struct quota_reading *reading);
/* Is there anything up to and at `t`? */
static inline bool quotas_due(const struct quotas *q, struct host_ns t)
{
	return q->n && q->waiting[0].until.ns <= t.ns;
}
/* Everything up to and at `t` goes to the model. */
void quotas_deliver(struct quotas *q, struct model *m, struct host_ns t);

#endif
