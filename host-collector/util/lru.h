/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bounded index: 64-bit keys to slots 0..capacity-1 of the caller's own arrays. When it is full,
 * the least recently touched key gives up its slot, so a peer that invents keys costs no memory.
 * The hash is seeded per index: a peer cannot choose keys that collide.
 */
#ifndef UTIL_LRU_H
#define UTIL_LRU_H

#include <stdbool.h>
#include <stdint.h>

#define LRU_NONE UINT32_MAX

enum { LRU_RECENT = 8 }; /* a power of two */

struct lru_entry {
	uint64_t key;
	uint32_t newer, older;
	bool used;
};

struct lru {
	uint32_t capacity, count, mask;
	uint32_t begun; /* slots below it were given to a key at least once */
	uint32_t newest, oldest, free;
	uint64_t seed;
	uint32_t *buckets; /* slot + 1, 0 empty; linear probing */
	struct lru_entry *entries;
	uint32_t recent[LRU_RECENT]; /* the slot of the key asked for last that ends so */
};

/* Room for `capacity` keys, all of it allocated now, and touched as keys come. 0 or -ENOMEM. */
int lru_init(struct lru *l, uint32_t capacity);
void lru_fini(struct lru *l);
/* What lru_find and lru_put do where the key was not asked for lately. */
uint32_t lru_search(const struct lru *l, uint64_t key);
uint32_t lru_touch(struct lru *l, uint64_t key, bool *fresh);

static inline bool lru_is_recent(const struct lru *l, uint64_t key)
{
	uint32_t slot = l->recent[key % LRU_RECENT];

	return slot != LRU_NONE && l->entries[slot].key == key && l->entries[slot].used;
}

/* The slot of `key`, or LRU_NONE. */
static inline uint32_t lru_find(const struct lru *l, uint64_t key)
{
	return lru_is_recent(l, key) ? l->recent[key % LRU_RECENT] : lru_search(l, key);
}

/* The slot of `key`, made the most recent. *fresh: the slot was given to this key just now, and
 * what the caller keeps there belongs to nobody or to an evicted key. */
static inline uint32_t lru_put(struct lru *l, uint64_t key, bool *fresh)
{
	uint32_t slot = l->recent[key % LRU_RECENT];

	if (slot != l->newest || !lru_is_recent(l, key))
		return lru_touch(l, key, fresh);
	*fresh = false;
	return slot;
}

/* This slot is the next to be evicted. */
void lru_age(struct lru *l, uint32_t slot);
void lru_remove(struct lru *l, uint32_t slot);

static inline bool lru_used(const struct lru *l, uint32_t slot)
{
	return l->entries[slot].used;
}

/* All used slots are below it: a loop over them need not go on to the capacity. */
static inline uint32_t lru_slots(const struct lru *l)
{
	return l->begun;
}

static inline uint64_t lru_key(const struct lru *l, uint32_t slot)
{
	return l->entries[slot].key;
}

#endif
