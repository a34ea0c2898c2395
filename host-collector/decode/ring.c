/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(struct ring_slot) == RING_SLOT_BYTES, "a slot is a page");

int ring_create(void)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int fd = memfd_create("vcpuscope-decoder", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, sizeof(struct ring)) && !fcntl(fd, F_ADD_SEALS, seals))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

struct ring *ring_map(int fd)
{
	void *at = mmap(NULL, sizeof(struct ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

void ring_unmap(struct ring *ring)
{
	if (ring)
		munmap(ring, sizeof(*ring));
}

static uint32_t slots_for(size_t bytes)
{
	return (uint32_t)((bytes + RING_BODY_BYTES - 1) / RING_BODY_BYTES);
}

static size_t body_bytes(size_t record, uint32_t part)
{
	size_t left = record - (size_t)part * RING_BODY_BYTES;

	return left < RING_BODY_BYTES ? left : RING_BODY_BYTES;
}

int ring_put(struct ring *ring, const struct guest_record *record)
{
	size_t bytes = record_bytes(record);
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	/* Acquire: what the reader has let go of may be written over. */
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	uint32_t n = slots_for(bytes);

	if (RING_SLOTS - (head - tail) < n)
		return -EAGAIN;
	for (uint32_t part = 0; part < n; part++) {
		struct ring_slot *slot = &ring->slots[(head + part) % RING_SLOTS];

		slot->part = part;
		slot->record_bytes = (uint32_t)bytes;
		memcpy(slot->body, (const uint8_t *)record + (size_t)part * RING_BODY_BYTES,
		       body_bytes(bytes, part));
	}
	/* Release: the slots are written before they count. */
	atomic_store_explicit(&ring->head, head + n, memory_order_release);
	return 0;
}

struct ring_reader *ring_reader_new(struct ring *ring)
{
	struct ring_reader *r = calloc(1, sizeof(*r));

	if (r)
		r->ring = ring;
	return r;
}

void ring_reader_free(struct ring_reader *r)
{
	free(r);
}

/* Adds one slot to the record. 1 when it is whole, 0, -EPROTO. */
static int slot_take(struct ring_reader *r, const struct ring_slot *slot)
{
	/* Read once each: the writer may change them while we look. */
	uint32_t part = *(const volatile uint32_t *)&slot->part;
	uint32_t bytes = *(const volatile uint32_t *)&slot->record_bytes;

	if (part != r->part || (part && bytes != r->record_bytes) || !bytes ||
	    bytes > sizeof(r->record) || part >= slots_for(bytes))
		return -EPROTO;
	r->record_bytes = bytes;
	memcpy((uint8_t *)&r->record + (size_t)part * RING_BODY_BYTES, slot->body,
	       body_bytes(bytes, part));
	r->part++;
	if (r->part < slots_for(bytes))
		return 0;
	r->part = 0;
	return record_check(&r->record, bytes) ? -EPROTO : 1;
}

int ring_take(struct ring_reader *r, unsigned int *slots, const struct guest_record **out)
{
	uint32_t head = atomic_load_explicit(&r->ring->head, memory_order_acquire);

	if (head - r->tail > RING_SLOTS)
		return -EPROTO;
	while (r->tail != head && *slots) {
		int whole = slot_take(r, &r->ring->slots[r->tail % RING_SLOTS]);

		if (whole < 0)
			return whole;
		r->tail++;
		--*slots;
		atomic_store_explicit(&r->ring->tail, r->tail, memory_order_release);
		if (whole) {
			*out = &r->record;
			return 1;
		}
	}
	return 0;
}
