/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bounded index that maps 64-bit keys to slots 0..capacity-1 of the caller's own arrays. When it
 * is full, a new key takes the slot of the least recently used key, so a peer that invents keys
 * cannot make memory grow. Each index seeds its hash with a random number, so a peer cannot choose
 * keys that collide.
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
	uint32_t bucket; /* that leads here */
	bool used;
};

struct lru {
	uint32_t capacity, count, mask;
	uint32_t begun; /* slots in use are below this number */
	uint32_t newest, oldest, free;
	uint64_t seed;
	uint32_t *buckets; /* slot + 1, or 0 if empty; linear probing */
	struct lru_entry *entries;
	/* A cache of recent lookups: the slot of the last key with key % LRU_RECENT == i. */
	uint32_t recent[LRU_RECENT];
};

/* Allocates memory for `capacity` keys. Returns 0 or -ENOMEM. */
int lru_init(struct lru *l, uint32_t capacity);
void lru_fini(struct lru *l);
/* The parts of lru_find() and lru_put() that do not use the cache of recent lookups. Call those
 * instead. */
uint32_t lru_search(const struct lru *l, uint64_t key);
uint32_t lru_touch(struct lru *l, uint64_t key, bool *fresh);
/* The part of lru_put() that makes a slot the most recently used, which it is not yet. */
void lru_renew(struct lru *l, uint32_t slot);

static inline bool lru_is_recent(const struct lru *l, uint64_t key)
{
	uint32_t slot = l->recent[key % LRU_RECENT];

	return slot != LRU_NONE && l->entries[slot].key == key && l->entries[slot].used;
}

/* Returns the slot of `key`, or LRU_NONE. */
static inline uint32_t lru_find(const struct lru *l, uint64_t key)
{
	return lru_is_recent(l, key) ? l->recent[key % LRU_RECENT] : lru_search(l, key);
}

/* Returns the slot of `key` and makes `key` the most recently used. Sets *fresh if the key is new:
 * the caller's data in this slot is then unused or belongs to an evicted key. */
static inline uint32_t lru_put(struct lru *l, uint64_t key, bool *fresh)
{
	uint32_t slot = l->recent[key % LRU_RECENT];

	if (!lru_is_recent(l, key))
		return lru_touch(l, key, fresh);
	*fresh = false;
	if (slot != l->newest)
		lru_renew(l, slot);
	return slot;
}

/* Returns a number below 2^bits: the place of `key` in a caller's own cache of what it found last.
 * Keys that differ only in their lowest bits have different places. */
static inline uint32_t lru_place(uint64_t key, unsigned bits)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15 >> (64 - bits));
}

/* Makes the slot's key the next that is evicted. */
void lru_age(struct lru *l, uint32_t slot);
void lru_remove(struct lru *l, uint32_t slot);
void lru_clear(struct lru *l); /* removes all keys */

static inline bool lru_used(const struct lru *l, uint32_t slot)
{
	return l->entries[slot].used;
}

/* Returns a number that is larger than every slot in use, for loops over all slots. It is at most
 * the capacity. */
static inline uint32_t lru_slots(const struct lru *l)
{
	return l->begun;
}

static inline uint64_t lru_key(const struct lru *l, uint32_t slot)
{
	return l->entries[slot].key;
}

#endif
