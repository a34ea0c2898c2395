/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the complete events of a CPU's ring (ring.h) in place. */
#ifndef BACKEND_RING_READER_H
#define BACKEND_RING_READER_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/prog/ring.h"

struct ring_reader {
	struct vs_ring *ring;
	size_t mask;    /* slots - 1 */
	uint64_t drops; /* number of drops before the events delivered so far */
	size_t taken;
};

struct ring_run {
	struct vs_event *events;
	size_t n;
};

/* Initializes a reader of `ring`, which it borrows. slots: a power of two. */
void ring_reader_init(struct ring_reader *r, struct vs_ring *ring, size_t slots);
/*
 * Returns the number of complete events that were not released yet, as at most two runs in the
 * order of time and seq; the second run is empty unless the ring wraps. early_drops: number of
 * events of this CPU that were lost before it had a ring. The events are valid until
 * ring_reader_release().
 */
size_t ring_reader_take(struct ring_reader *r, uint64_t early_drops, struct ring_run runs[2]);
/* Frees the slots of the last ring_reader_take() for new events. */
void ring_reader_release(struct ring_reader *r);

#endif
