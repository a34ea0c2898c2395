/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What QEMU said of its VMs' pauses and migrations, on its way to a model: notes arrive when they
 * were sent, events when they have been merged, and the model wants both in time order.
 */
#ifndef ENGINE_PAUSES_H
#define ENGINE_PAUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"
#include "host-collector/model/model.h"

enum { PAUSES_MAX = 64 };

struct pause {
	uint32_t vm;
	struct host_ns t;
	enum note_kind kind; /* VM_PAUSED, VM_RESUMED, MIGRATION, MIGRATION_OVER */
};

struct pauses {
	struct pause waiting[PAUSES_MAX]; /* in time order */
	size_t n;
};

/* When too many wait the oldest goes to the model at once. */
void pauses_add(struct pauses *p, struct model *m, const struct pause *pause);
/* Is there anything up to and at `t`? */
static inline bool pauses_due(const struct pauses *p, struct host_ns t)
{
	return p->n && p->waiting[0].t.ns <= t.ns;
}
/* Everything up to and at `t` goes to the model. */
void pauses_deliver(struct pauses *p, struct model *m, struct host_ns t);

#endif
