/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who held a pCPU while a vCPU waited for it, where several tasks did in turn: a ring of the
 * newest, of which a span names its own by numbers. Whoever looks too late finds them gone, and has
 * the span's longest holder all the same.
 */
#ifndef MODEL_CROWD_H
#define MODEL_CROWD_H

#include <stddef.h>
#include <stdint.h>

enum { CROWD_RING = 4096 };

struct vcpu_holder {
	int32_t pid; /* 0: the pCPU idled */
	int64_t ns;
};

struct crowd_ring {
	uint64_t n; /* ever added */
	struct vcpu_holder ring[CROWD_RING];
};

static inline void crowd_add(struct crowd_ring *c, const struct vcpu_holder *h)
{
	c->ring[c->n++ % CROWD_RING] = *h;
}

/* The holder of this number; NULL if it is gone. */
static inline const struct vcpu_holder *crowd_at(const struct crowd_ring *c, uint64_t number)
{
	return c && number < c->n && c->n - number <= CROWD_RING ? &c->ring[number % CROWD_RING]
								 : NULL;
}

#endif
