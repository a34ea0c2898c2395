/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bounded bump allocator behind protobuf-c. A few wire bytes can ask protobuf-c for many bytes
 * of memory (a two-byte sub-message becomes a struct, a pointer and a scan record), so what a peer
 * sends is parsed into storage of bounded size: when it is used up, parsing fails. The storage
 * grows in chunks as it is used, for the bound is far above what an honest message needs.
 */
#ifndef PROTO_ARENA_H
#define PROTO_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

enum { ARENA_CHUNKS = 20 }; /* each twice as large as the one before */

struct arena_chunk {
	uint8_t *data;
	size_t bytes, used;
};

struct arena {
	ProtobufCAllocator allocator;
	struct arena_chunk chunks[ARENA_CHUNKS];
	size_t n_chunks, at; /* at: that is being used up */
	size_t used, limit;
	/* Since the last reset an allocation was refused: by the limit, for want of memory. */
	bool exhausted, failed;
};

/* Hands out at most `limit` bytes between two resets. Must not move afterwards: the allocator
 * points into it. */
void arena_init(struct arena *a, size_t limit);
/* Makes everything allocated so far invalid. */
void arena_reset(struct arena *a);
void arena_fini(struct arena *a);

/*
 * Parses `payload` into the arena; *out is valid until its reset. 0, -EBADMSG (no such message),
 * -E2BIG (it needs more than the arena has), -ENOMEM.
 */
int arena_unpack(struct arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *payload,
		 size_t len, ProtobufCMessage **out);

#endif
