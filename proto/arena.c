// SPDX-License-Identifier: GPL-2.0-only
/* Nothing is freed one by one: protobuf-c's frees are ignored, a reset forgets everything. */
#include "proto/arena.h"

#include <errno.h>
#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>

/* With AddressSanitizer what was not handed out is poisoned, and a gap follows what was. */
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__) && __has_feature(address_sanitizer)
enum { ARENA_ALIGN = 16, ARENA_GAP = 16 };
#else
enum { ARENA_ALIGN = 16, ARENA_GAP = 0 };
#endif

static void *arena_alloc(void *context, size_t size)
{
	struct arena *a = context;
	void *p;

	if (size > a->limit - a->used) {
		a->exhausted = true;
		return NULL;
	}
	p = a->data + a->used;
	ASAN_UNPOISON_MEMORY_REGION(p, size);
	size = (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN + ARENA_GAP;
	a->used = size < a->limit - a->used ? a->used + size : a->limit;
	return p;
}

static void arena_free(void *context, void *p)
{
	(void)context;
	(void)p;
}

int arena_init(struct arena *a, size_t limit)
{
	*a = (struct arena){.limit = limit};
	a->data = malloc(limit);
	if (!a->data)
		return -ENOMEM;
	ASAN_POISON_MEMORY_REGION(a->data, limit);
	a->allocator = (ProtobufCAllocator){
		.alloc = arena_alloc,
		.free = arena_free,
		.allocator_data = a,
	};
	return 0;
}

void arena_reset(struct arena *a)
{
	ASAN_POISON_MEMORY_REGION(a->data, a->used);
	a->used = 0;
	a->exhausted = false;
}

void *arena_calloc(struct arena *a, size_t n, size_t size)
{
	void *p;

	if (size && n > SIZE_MAX / size)
		return NULL;
	p = arena_alloc(a, n * size);
	if (p)
		memset(p, 0, n * size);
	return p;
}

void arena_fini(struct arena *a)
{
	free(a->data);
	*a = (struct arena){0};
}

int arena_unpack(struct arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *payload,
		 size_t len, ProtobufCMessage **out)
{
	*out = protobuf_c_message_unpack(type, &a->allocator, len, payload);
	if (*out)
		return 0;
	return a->exhausted ? -E2BIG : -EBADMSG;
}
