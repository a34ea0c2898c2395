/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The shared memory between one decoder process and the collector. Records (record.h) are split
 * into slots of fixed size. There is one writer, one reader and no pointer.
 *
 * The reader copies each slot before it checks it and keeps its own position, so the writer's
 * changes to the memory can only make the reader stop with -EPROTO. The memory file is sealed:
 * neither side can shrink it while the other has mapped it.
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
	RING_SLOTS = 256, /* power of two; 1 MiB holds three of the largest batches */
	RING_SLOT_BYTES = 4096,
	RING_BODY_BYTES = RING_SLOT_BYTES - 16,
};

struct ring_slot {
	uint32_t part;         /* index of this slot within the record, from 0 */
	uint32_t record_bytes; /* size of the whole record, the same in each of its slots */
	uint64_t reserved;
	uint8_t body[RING_BODY_BYTES];
};

/* The decoder's parameters. The collector writes them before the decoder starts, so the decoder may
 * trust them. */
struct ring_config {
	struct message_hello hello;    /* the host's greeting for the agent */
	struct message_config request; /* the configuration to request from the agent */
	uint64_t bytes_per_s;          /* limit for the channel; 0: no limit */
	uint32_t cpu_permille;         /* limit of CPU time, per mille of one CPU; 0: no limit */
	uint64_t memory_bytes;         /* limit beyond the memory at its start */
	pid_t collector;               /* the decoder dies with this process */
	struct tls_psk psk;            /* without a key the channel is plain */
	bool listens; /* WORKER_CHANNEL delivers connections (gate.h) instead of being one */
};

struct ring {
	struct ring_config config;
	_Alignas(64) _Atomic uint32_t head; /* slots written; the decoder writes it */
	_Atomic uint32_t beat;              /* increases while the decoder runs */
	_Alignas(64) _Atomic uint32_t tail; /* slots read; the collector writes it */
	_Alignas(4096) struct ring_slot slots[RING_SLOTS];
};

/* Creates a sealed memory file of the ring's size. Returns a descriptor or -errno. */
int ring_create(void);
/* Maps the ring. Returns NULL with errno set on failure. ring_unmap(NULL) is allowed. */
struct ring *ring_map(int fd);
void ring_unmap(struct ring *ring);

/* Writes a whole record; the decoder calls this. Returns 0, or -EAGAIN if there is no room now. */
int ring_put(struct ring *ring, const struct guest_record *record);

/* The collector's state, in its private memory. */
struct ring_reader {
	struct ring *ring;
	uint32_t tail;
	uint32_t part, record_bytes; /* of the record that is being assembled */
	struct guest_record record;
};
struct ring_reader *ring_reader_new(struct ring *ring); /* borrows; NULL: no memory */
void ring_reader_free(struct ring_reader *r);
/* Reads the next record and checks it; it is valid until the next call. Reads at most *slots slots
 * and subtracts the number read from *slots. Returns 1 with a record, 0 if there is no complete
 * record, or -EPROTO if the content breaks the format. */
int ring_take(struct ring_reader *r, unsigned int *slots, const struct guest_record **out);

#endif
