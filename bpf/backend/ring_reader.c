/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/backend/ring_reader.h"

void ring_reader_init(struct ring_reader *r, struct vs_ring *ring, size_t slots)
{
	*r = (struct ring_reader){.ring = ring, .mask = slots - 1};
}

static struct vs_event *slot_at(const struct ring_reader *r, uint64_t position)
{
	return &r->ring->slots[position & r->mask];
}

/* Moves the event at `position` to its place in the order of time. seq stays with the slots. */
static void sort_in(const struct ring_reader *r, uint64_t first, uint64_t position)
{
	const struct vs_event moved = *slot_at(r, position);

	while (position > first && slot_at(r, position - 1)->time > moved.time) {
		struct vs_event *to = slot_at(r, position);
		const vs_u32 seq = to->seq;

		*to = *slot_at(r, position - 1);
		to->seq = seq;
		position--;
	}
	struct vs_event *to = slot_at(r, position);
	const vs_u32 seq = to->seq;

	*to = moved;
	to->seq = seq;
}

size_t ring_reader_take(struct ring_reader *r, uint64_t early_drops, struct ring_run runs[2])
{
	const uint64_t first = r->ring->tail;
	const size_t slots = r->mask + 1;
	uint64_t latest = 0;
	size_t n;

	for (n = 0; n < slots; n++) {
		struct vs_event *slot = slot_at(r, first + n);

		/* Pairs with the program's last store: if there is a type, the event is complete.
		 */
		if (!__atomic_load_n(&slot->type, __ATOMIC_ACQUIRE))
			break;
		/* A nested program may have read a newer counter than the one that it interrupted.
		 */
		const int32_t newer =
			(int32_t)(slot->seq + (uint32_t)early_drops - (uint32_t)r->drops);

		if (newer > 0)
			r->drops += (uint32_t)newer;
		slot->seq = (uint32_t)(first + n + r->drops);
		if (slot->time < latest)
			sort_in(r, first, first + n);
		else
			latest = slot->time;
	}
	const size_t start = first & r->mask;
	const size_t till_wrap = n < slots - start ? n : slots - start;

	runs[0] = (struct ring_run){slot_at(r, first), till_wrap};
	runs[1] = (struct ring_run){r->ring->slots, n - till_wrap};
	r->taken = n;
	return n;
}

void ring_reader_release(struct ring_reader *r)
{
	const uint64_t first = r->ring->tail;

	for (size_t i = 0; i < r->taken; i++)
		__atomic_store_n(&slot_at(r, first + i)->type, VS_EVENT_NONE, __ATOMIC_RELAXED);
	__atomic_store_n(&r->ring->tail, first + r->taken, __ATOMIC_RELEASE);
	r->taken = 0;
}
