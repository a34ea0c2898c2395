/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/lru.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

int lru_init(struct lru *l, uint32_t capacity)
{
	unsigned bits = 4;

	while (1u << bits < capacity)
		bits++;
	*l = (struct lru){.capacity = capacity, .free = LRU_NONE, .shift = 64 - bits};
	l->buckets = calloc((size_t)1 << bits, sizeof(*l->buckets));
	l->entries = calloc((size_t)capacity + 1, sizeof(*l->entries));
	if (!l->buckets || !l->entries) {
		lru_fini(l);
		return -ENOMEM;
	}
	l->entries[capacity].newer = l->entries[capacity].older = capacity;
	/* Without entropy the index still works, only a peer could then slow it down. */
	if (getrandom(&l->factor, sizeof(l->factor), GRND_NONBLOCK) != (ssize_t)sizeof(l->factor))
		l->factor = 0x9e3779b97f4a7c15 ^ (uint64_t)(uintptr_t)l->entries;
	l->factor |= 1;
	return 0;
}

void lru_fini(struct lru *l)
{
	free(l->buckets);
	free(l->entries);
	memset(l, 0, sizeof(*l));
}

static inline void unlink_entry(struct lru *l, uint32_t slot)
{
	const struct lru_entry *e = &l->entries[slot];

	l->entries[e->newer].older = e->older;
	l->entries[e->older].newer = e->newer;
}

/* Puts the slot between two neighbours. */
static inline void link_entry(struct lru *l, uint32_t older, uint32_t slot, uint32_t newer)
{
	l->entries[slot].older = older;
	l->entries[slot].newer = newer;
	l->entries[older].newer = slot;
	l->entries[newer].older = slot;
}

void lru_age(struct lru *l, uint32_t slot)
{
	unlink_entry(l, slot);
	link_entry(l, l->capacity, slot, lru_oldest(l));
}

void lru_remove(struct lru *l, uint32_t slot)
{
	struct lru_entry *e = &l->entries[slot];
	uint32_t *link = lru_bucket(l, e->key);

	while (*link != slot + 1)
		link = &l->entries[*link - 1].next;
	*link = e->next;
	unlink_entry(l, slot);
	e->used = false;
	e->older = l->free;
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

/* Gives a new key a slot. There must be a free one. */
static inline uint32_t slot_give(struct lru *l, uint64_t key)
{
	uint32_t slot = l->free, *bucket = lru_bucket(l, key);
	struct lru_entry *e;

	if (slot == LRU_NONE)
		slot = l->begun++;
	else
		l->free = l->entries[slot].older;
	e = &l->entries[slot];
	e->key = key;
	e->used = true;
	e->next = *bucket;
	*bucket = slot + 1;
	link_entry(l, l->entries[l->capacity].older, slot, l->capacity);
	l->count++;
	return slot;
}

/* Not inlined: lru_put() would pay for its registers. */
__attribute__((noinline)) static uint32_t slot_take(struct lru *l, uint64_t key)
{
	lru_remove(l, lru_oldest(l));
	return slot_give(l, key);
}

uint32_t lru_put(struct lru *l, uint64_t key, bool *fresh)
{
	const uint32_t slot = lru_find(l, key);

	*fresh = slot == LRU_NONE;
	if (*fresh)
		return l->count < l->capacity ? slot_give(l, key) : slot_take(l, key);
	if (l->entries[slot].newer != l->capacity) {
		unlink_entry(l, slot);
		link_entry(l, l->entries[l->capacity].older, slot, l->capacity);
	}
	return slot;
}
