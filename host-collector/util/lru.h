/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bounded index that maps 64-bit keys to slots 0..capacity-1 of the caller's own arrays. When it
 * is full, a new key takes the slot of the least recently used key, so a peer that invents keys
 * cannot make memory grow. Each index multiplies the keys by a random number of its own to find
 * their buckets, so a peer cannot choose keys that collide.
 */
#ifndef UTIL_LRU_H
#define UTIL_LRU_H

#include <stdbool.h>
#include <stdint.h>

#define LRU_NONE UINT32_MAX

/* Entries have numbers: slot + 1. Number 0 is no slot. It joins the newest to the oldest entry, so
 * that each entry has two neighbours by age. */
struct lru_entry {
	uint64_t key;
	uint32_t newer, older; /* in use: its neighbours by age; else `older`: the next free one */
	uint32_t next;         /* in its bucket; 0: it is the last */
	bool used;
};

struct lru {
	uint32_t capacity, count;
	uint32_t begun; /* slots in use are below this number */
	uint32_t free;  /* number of the first free entry that was in use before; 0: none */
	uint32_t aged;  /* number of the last entry of those that lru_age() moved; 0: none */
	unsigned shift;
	uint64_t factor;   /* odd and random */
	uint32_t *buckets; /* number of the first entry; 0: none */
	struct lru_entry *entries;
};

/* Allocates memory for `capacity` keys. Returns 0 or -ENOMEM. */
int lru_init(struct lru *l, uint32_t capacity);
void lru_fini(struct lru *l);

/* Two keys share a bucket with a probability of at most 2 / number of buckets, whatever the keys
 * are, as long as nobody knows the factor. */
static inline uint32_t *lru_bucket(const struct lru *l, uint64_t key)
{
	return &l->buckets[key * l->factor >> l->shift];
}

/* Returns the slot of `key`, or LRU_NONE. */
static inline uint32_t lru_find(const struct lru *l, uint64_t key)
{
	uint32_t n = *lru_bucket(l, key);

	while (n && l->entries[n].key != key)
		n = l->entries[n].next;
	return n - 1; /* 0 - 1 is LRU_NONE */
}

struct lru_found {
	uint32_t slot;
	bool fresh;
};

/* lru_put() of a key that is not the most recently used one. Returns both results, because a
 * pointer to a variable of the caller would cost all of its calls a check of its stack. */
struct lru_found lru_put_older(struct lru *l, uint64_t key);

/* Returns the slot of `key` and makes `key` the most recently used. Sets *fresh if the key is new:
 * the caller's data in this slot is then unused or belongs to an evicted key. */
static inline uint32_t lru_put(struct lru *l, uint64_t key, bool *fresh)
{
	const uint32_t newest = l->entries[0].older;
	struct lru_found found = {newest - 1, false};

	/* Events of one vCPU or task often follow each other. */
	if (!newest || l->entries[newest].key != key)
		found = lru_put_older(l, key);
	*fresh = found.fresh;
	return found.slot;
}

/* Returns the slot of the least recently used key. There must be one. */
static inline uint32_t lru_oldest(const struct lru *l)
{
	return l->entries[0].newer - 1;
}

/* Returns a number below 2^bits: the place of `key` in a caller's own cache of what it found last.
 * Keys that differ only in their lowest bits have different places. */
static inline uint32_t lru_place(uint64_t key, unsigned bits)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15 >> (64 - bits));
}

/* Makes the slot's key the next that is evicted, after those for which this was done before and
 * which were not used since. */
void lru_age(struct lru *l, uint32_t slot);
void lru_remove(struct lru *l, uint32_t slot);
void lru_clear(struct lru *l); /* removes all keys */

static inline bool lru_used(const struct lru *l, uint32_t slot)
{
	return l->entries[slot + 1].used;
}

/* Returns a number that is larger than every slot in use, for loops over all slots. It is at most
 * the capacity. */
static inline uint32_t lru_slots(const struct lru *l)
{
	return l->begun;
}

static inline uint64_t lru_key(const struct lru *l, uint32_t slot)
{
	return l->entries[slot + 1].key;
}

#endif
