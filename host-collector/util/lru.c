/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/lru.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint32_t bucket_of(const struct lru *l, uint64_t key)
{
	uint64_t h = key + l->seed; /* splitmix64's finaliser */

	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
	h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
	return (uint32_t)(h ^ (h >> 31)) & l->mask;
}

int lru_init(struct lru *l, uint32_t capacity)
{
	uint32_t size = 16;

	while (size < capacity * 2)
		size *= 2;
	*l = (struct lru){.capacity = capacity, .mask = size - 1};
	l->newest = l->oldest = l->free = LRU_NONE;
	l->buckets = calloc(size, sizeof(*l->buckets));
	l->entries = calloc(capacity, sizeof(*l->entries));
	if (!l->buckets || !l->entries) {
		lru_fini(l);
		return -ENOMEM;
	}
	memset(l->recent, 0xff, sizeof(l->recent)); /* LRU_NONE */
	/* Without entropy the index still works, only a peer could then slow it down. */
	if (getrandom(&l->seed, sizeof(l->seed), GRND_NONBLOCK) != (ssize_t)sizeof(l->seed))
		l->seed = (uint64_t)(uintptr_t)l->entries;
	return 0;
}

void lru_fini(struct lru *l)
{
	free(l->buckets);
	free(l->entries);
	memset(l, 0, sizeof(*l));
}

static uint32_t find_bucket(const struct lru *l, uint64_t key)
{
	uint32_t b = bucket_of(l, key);

	while (l->buckets[b] && l->entries[l->buckets[b] - 1].key != key)
		b = (b + 1) & l->mask;
	return b;
}

uint32_t lru_search(const struct lru *l, uint64_t key)
{
	uint32_t slot = l->buckets[find_bucket(l, key)];

	return slot ? slot - 1 : LRU_NONE;
}

static void unlink_entry(struct lru *l, uint32_t slot)
{
	struct lru_entry *e = &l->entries[slot];

	if (e->newer != LRU_NONE)
		l->entries[e->newer].older = e->older;
	else
		l->newest = e->older;
	if (e->older != LRU_NONE)
		l->entries[e->older].newer = e->newer;
	else
		l->oldest = e->newer;
}

static void link_newest(struct lru *l, uint32_t slot)
{
	struct lru_entry *e = &l->entries[slot];

	e->newer = LRU_NONE;
	e->older = l->newest;
	if (l->newest != LRU_NONE)
		l->entries[l->newest].newer = slot;
	else
		l->oldest = slot;
	l->newest = slot;
}

void lru_age(struct lru *l, uint32_t slot)
{
	struct lru_entry *e = &l->entries[slot];

	unlink_entry(l, slot);
	e->older = LRU_NONE;
	e->newer = l->oldest;
	if (l->oldest != LRU_NONE)
		l->entries[l->oldest].older = slot;
	else
		l->newest = slot;
	l->oldest = slot;
}

void lru_remove(struct lru *l, uint32_t slot)
{
	uint32_t hole = l->entries[slot].bucket, b = hole;

	/* Backward shift: close the gap so that probing needs no tombstones. */
	for (;;) {
		uint32_t home;

		b = (b + 1) & l->mask;
		if (!l->buckets[b])
			break;
		home = bucket_of(l, l->entries[l->buckets[b] - 1].key);
		if (((b - home) & l->mask) >= ((b - hole) & l->mask)) {
			l->buckets[hole] = l->buckets[b];
			l->entries[l->buckets[b] - 1].bucket = hole;
			hole = b;
		}
	}
	l->buckets[hole] = 0;
	unlink_entry(l, slot);
	l->entries[slot].used = false;
	l->entries[slot].older = l->free;
	l->free = slot;
	l->count--;
}

void lru_clear(struct lru *l)
{
	for (uint32_t slot = 0; slot < l->begun; slot++) {
		if (l->entries[slot].used)
			lru_remove(l, slot);
	}
}

static uint32_t slot_give(struct lru *l, uint64_t key, uint32_t bucket)
{
	uint32_t slot;

	if (l->count == l->capacity) {
		lru_remove(l, l->oldest);
		bucket = find_bucket(l, key);
	}
	slot = l->free;
	if (slot != LRU_NONE)
		l->free = l->entries[slot].older;
	else
		slot = l->begun++;
	l->entries[slot].key = key;
	l->entries[slot].bucket = bucket;
	l->entries[slot].used = true;
	l->buckets[bucket] = slot + 1;
	link_newest(l, slot);
	l->count++;
	return slot;
}

void lru_renew(struct lru *l, uint32_t slot)
{
	unlink_entry(l, slot);
	link_newest(l, slot);
}

uint32_t lru_touch(struct lru *l, uint64_t key, bool *fresh)
{
	const uint32_t bucket = find_bucket(l, key);
	uint32_t slot = l->buckets[bucket] - 1;

	*fresh = !l->buckets[bucket];
	if (*fresh)
		slot = slot_give(l, key, bucket);
	else if (slot != l->newest)
		lru_renew(l, slot);
	l->recent[key % LRU_RECENT] = slot;
	return slot;
}
