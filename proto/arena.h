/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bounded bump allocator behind protobuf-c. A few wire bytes can ask protobuf-c for many bytes
 * of memory (a two-byte sub-message becomes a struct, a pointer and a scan record), so what a peer
 * sends is parsed into storage of fixed size: when it is used up, parsing fails.
 */
#ifndef PROTO_ARENA_H
#define PROTO_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

struct arena {
	ProtobufCAllocator allocator;
	uint8_t *data;
	size_t used;
	size_t limit;
	bool exhausted; /* an allocation was refused since the last reset */
};

/* Reserves `limit` bytes. 0 or -ENOMEM. Must not move afterwards: the allocator points into it. */
int arena_init(struct arena *a, size_t limit);
/* Makes everything allocated so far invalid. */
void arena_reset(struct arena *a);
/* Zeroed room for n objects of `size` bytes, or NULL. */
void *arena_calloc(struct arena *a, size_t n, size_t size);
void arena_fini(struct arena *a);

/*
 * Parses `payload` into the arena; *out is valid until its reset. 0, -EBADMSG (no such message),
 * -E2BIG (it needs more than the arena has).
 */
int arena_unpack(struct arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *payload,
		 size_t len, ProtobufCMessage **out);

#endif
