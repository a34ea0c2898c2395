/* SPDX-License-Identifier: GPL-2.0-only */
/* Userspace's half of ring.h: hands out what one CPU's probes have committed, in place. */
#ifndef BACKEND_RING_READER_H
#define BACKEND_RING_READER_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/prog/ring.h"

struct ring_reader {
	struct vs_ring *ring;
	size_t mask;    /* slots - 1 */
	uint64_t drops; /* drops known to lie before the events handed out so far */
	size_t taken;
};

struct ring_run {
	struct vs_event *events;
	size_t n;
};

/* ring: with a power-of-two number of slots, borrowed. */
void ring_reader_init(struct ring_reader *r, struct vs_ring *ring, size_t slots);
/*
 * Everything committed and not yet released, as at most two runs in time and seq order; the second
 * is empty unless the ring wraps. early_drops: events of this CPU that were lost before the ring
 * existed. Returns the number of events; they stay valid until ring_reader_release().
 */
size_t ring_reader_take(struct ring_reader *r, uint64_t early_drops, struct ring_run runs[2]);
/* Gives the slots of the last take back to the probes. */
void ring_reader_release(struct ring_reader *r);

#endif
