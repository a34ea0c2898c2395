/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The shared memory between one decoder process and the collector: records (record.h) cut into
 * slots of fixed size, one writer, one reader, no pointers. The reader copies a slot before it
 * looks at it and keeps its own position; whatever the writer does to the memory can make it stop
 * believing the writer, nothing else. The memory is sealed, so that it cannot shrink under it.
 */
#ifndef DECODE_RING_H
#define DECODE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-collector/decode/record.h"
#include "proto/tls_psk.h"

enum {
	RING_SLOTS = 256, /* power of two; 1 MiB: three of the largest batches */
	RING_SLOT_BYTES = 4096,
	RING_BODY_BYTES = RING_SLOT_BYTES - 16,
};

struct ring_slot {
	uint32_t part;         /* 0, 1, .. of one record */
	uint32_t record_bytes; /* the same in every part */
	uint64_t reserved;
	uint8_t body[RING_BODY_BYTES];
};

/* What the decoder is told at its start, by us: it may trust it. */
struct ring_config {
	struct message_hello hello; /* ours, for the agent */
	struct message_config wish; /* what the agent is asked for */
	uint64_t bytes_per_s;       /* of the channel; 0: no limit */
	uint32_t cpu_permille;      /* of one CPU; 0: no limit */
	uint64_t memory_bytes;      /* above what it begins with */
	pid_t collector;            /* with which it dies */
	struct tls_psk psk;         /* no key: the channel is plain */
	bool listens; /* WORKER_CHANNEL is no connection, but the door by which they come (gate.h)
		       */
};

struct ring {
	struct ring_config config;
	_Alignas(64) _Atomic uint32_t head; /* slots written, the decoder's */
	_Atomic uint32_t beat;              /* counts on while the decoder lives */
	_Alignas(64) _Atomic uint32_t tail; /* slots read, the collector's word */
	_Alignas(4096) struct ring_slot slots[RING_SLOTS];
};

/* A sealed memory file of the ring's size. Descriptor or -errno. */
int ring_create(void);
/* NULL: errno says why. ring_unmap(NULL) is allowed. */
struct ring *ring_map(int fd);
void ring_unmap(struct ring *ring);

/* The decoder: writes all of a record, or -EAGAIN if the ring has no room for it now. */
int ring_put(struct ring *ring, const struct guest_record *record);

/* The collector's half, in its own memory. */
struct ring_reader {
	struct ring *ring;
	uint32_t tail;
	uint32_t part, record_bytes; /* of the record that is being put together */
	struct guest_record record;
};
struct ring_reader *ring_reader_new(struct ring *ring); /* borrows it; NULL on ENOMEM */
void ring_reader_free(struct ring_reader *r);
/* The next record, checked, valid until the next call: 1, 0 if there is none, -EPROTO if this is
 * not what a decoder of ours writes. Looks at `*slots` slots at most and lowers it. */
int ring_take(struct ring_reader *r, unsigned int *slots, const struct guest_record **out);

#endif
