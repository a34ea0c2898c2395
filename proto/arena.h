/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bump allocator of bounded size for protobuf-c.
 *
 * Some bytes on the wire cost protobuf-c far more bytes of memory: an empty sub-message of two
 * bytes needs a struct, a pointer and a scan record. The bytes of a peer are therefore parsed into
 * an arena, and parsing fails when the arena is full. The arena allocates its chunks on demand,
 * because its limit is far above the need of a normal message.
 */
#ifndef PROTO_ARENA_H
#define PROTO_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

enum { ARENA_CHUNKS = 20 }; /* each is twice as large as its predecessor */

struct arena_chunk {
	uint8_t *data;
	size_t bytes, used;
};

struct arena {
	ProtobufCAllocator allocator;
	struct arena_chunk chunks[ARENA_CHUNKS];
	size_t n_chunks, at; /* at: index of the chunk in use */
	size_t used, limit;
	/* An allocation has failed: because of the limit; because malloc() failed. */
	bool exhausted, failed;
};

/* Initialises an arena that allocates at most `limit` bytes. Do not move the arena afterwards: its
 * allocator points to it. */
void arena_init(struct arena *a, size_t limit);
void arena_fini(struct arena *a);

/*
 * Parses `payload` into the arena. *out is valid until arena_fini(). Returns 0, -EBADMSG (the
 * payload is not a message of this type), -E2BIG (the message exceeds the arena's limit) or
 * -ENOMEM.
 */
int arena_unpack(struct arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *payload,
		 size_t len, ProtobufCMessage **out);

#endif
