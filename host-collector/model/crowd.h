/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The holders of pCPUs: the tasks that ran on a pCPU while a vCPU waited for it. A span with
 * several holders refers to entries of this ring by number. The ring keeps the newest entries, so
 * the holders of an old span may be gone. Its longest holder is always in the span itself.
 */
#ifndef MODEL_CROWD_H
#define MODEL_CROWD_H

#include <stddef.h>
#include <stdint.h>

enum { CROWD_RING = 4096 };

struct vcpu_holder {
	int32_t pid; /* 0: the pCPU was idle */
	int64_t ns;
};

struct crowd_ring {
	uint64_t n; /* total number */
	struct vcpu_holder ring[CROWD_RING];
};

static inline void crowd_add(struct crowd_ring *c, const struct vcpu_holder *h)
{
	c->ring[c->n++ % CROWD_RING] = *h;
}

/* Returns the holder with this number, or NULL if it is no longer kept. */
static inline const struct vcpu_holder *crowd_at(const struct crowd_ring *c, uint64_t number)
{
	return c && number < c->n && c->n - number <= CROWD_RING ? &c->ring[number % CROWD_RING]
								 : NULL;
}

#endif
