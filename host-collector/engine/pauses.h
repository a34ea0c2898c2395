/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delivers the pauses and migrations of VMs that QEMU reports to a model in time order. A note
 * arrives when it is sent, but events reach the model only after they are merged, so notes wait
 * here for older events.
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
	enum note_kind kind; /* NOTE_VM_PAUSED, _VM_RESUMED, _MIGRATION or _MIGRATION_OVER */
};

struct pauses {
	struct pause waiting[PAUSES_MAX]; /* in time order */
	size_t n;
};

/* Adds a note. If the queue is full, delivers the oldest note at once. */
void pauses_add(struct pauses *p, struct model *m, const struct pause *pause);
/* Returns true if a note at or before `t` waits. */
static inline bool pauses_due(const struct pauses *p, struct host_ns t)
{
	return p->n && p->waiting[0].t.ns <= t.ns;
}
/* Delivers all notes at or before `t` to the model. */
void pauses_deliver(struct pauses *p, struct model *m, struct host_ns t);

#endif
