// SPDX-License-Identifier: GPL-2.0-only
/* The arena frees no single allocation: it ignores the frees of protobuf-c. */
#include "proto/arena.h"

#include <errno.h>
#include <sanitizer/asan_interface.h>
#include <stdlib.h>

/* With AddressSanitizer what was not handed out is poisoned, and a gap follows what was. */
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__) && __has_feature(address_sanitizer)
enum { ARENA_ALIGN = 16, ARENA_GAP = 16 };
#else
enum { ARENA_ALIGN = 16, ARENA_GAP = 0 };
#endif

enum { FIRST_CHUNK_BYTES = 4096 };

/* A chunk with room for `size` bytes; NULL: none can be had. */
static struct arena_chunk *chunk_with_room(struct arena *a, size_t size)
{
	size_t bytes = (size_t)FIRST_CHUNK_BYTES << a->n_chunks;
	struct arena_chunk *c;

	for (; a->at < a->n_chunks; a->at++) {
		c = &a->chunks[a->at];
		if (size <= c->bytes - c->used)
			return c;
	}
	if (a->n_chunks == ARENA_CHUNKS)
		return NULL;
	if (bytes < size)
		bytes = size;
	c = &a->chunks[a->n_chunks];
	*c = (struct arena_chunk){.data = malloc(bytes), .bytes = bytes};
	if (!c->data)
		return NULL;
	ASAN_POISON_MEMORY_REGION(c->data, bytes);
	a->n_chunks++;
	return c;
}

static void *arena_alloc(void *context, size_t size)
{
	const size_t rounded =
		(size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN + (size_t)ARENA_GAP;
	struct arena *a = context;
	struct arena_chunk *c;
	void *p;

	if (size > a->limit - a->used) {
		a->exhausted = true;
		return NULL;
	}
	c = chunk_with_room(a, rounded);
	if (!c) {
		a->failed = true;
		return NULL;
	}
	p = c->data + c->used;
	ASAN_UNPOISON_MEMORY_REGION(p, size);
	c->used += rounded;
	a->used = rounded < a->limit - a->used ? a->used + rounded : a->limit;
	return p;
}

static void arena_free(void *context, void *p)
{
	(void)context;
	(void)p;
}

void arena_init(struct arena *a, size_t limit)
{
	*a = (struct arena){.limit = limit};
	a->allocator = (ProtobufCAllocator){
		.alloc = arena_alloc,
		.free = arena_free,
		.allocator_data = a,
	};
}

void arena_fini(struct arena *a)
{
	for (size_t i = 0; i < a->n_chunks; i++)
		free(a->chunks[i].data);
	*a = (struct arena){0};
}

int arena_unpack(struct arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *payload,
		 size_t len, ProtobufCMessage **out)
{
	*out = protobuf_c_message_unpack(type, &a->allocator, len, payload);
	if (*out)
		return 0;
	return a->exhausted ? -E2BIG : a->failed ? -ENOMEM : -EBADMSG;
}
