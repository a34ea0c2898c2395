/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies text of a peer into a bounded, NUL-terminated string of valid UTF-8, and hashes texts. */
#ifndef PROTO_TEXT_H
#define PROTO_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Copies `src` (NUL-terminated) to dst[0..size-1]. Replaces bytes that are not UTF-8 by U+FFFD and
 * cuts text that does not fit between two characters. Keeps control characters: views escape them.
 */
void text_copy(char *dst, size_t size, const char *src);

#define TEXT_HASH_BEGIN 0xcbf29ce484222325ull
/* Continues the FNV-1a hash `hash`, which is TEXT_HASH_BEGIN for the first text. */
static inline uint64_t text_hash_add(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ull;
	return hash;
}
/* Returns the FNV-1a hash of a text. */
static inline uint64_t text_hash(const char *text)
{
	return text_hash_add(TEXT_HASH_BEGIN, text);
}

#endif
