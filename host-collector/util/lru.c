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
	*l = (struct lru){.capacity = capacity, .shift = 64 - bits};
	l->buckets = calloc((size_t)1 << bits, sizeof(*l->buckets));
	l->entries = calloc((size_t)capacity + 1, sizeof(*l->entries));
	if (!l->buckets || !l->entries) {
		lru_fini(l);
		return -ENOMEM;
	}
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

static inline void unlink_entry(struct lru *l, uint32_t n)
{
	const struct lru_entry *e = &l->entries[n];

	l->entries[e->newer].older = e->older;
	l->entries[e->older].newer = e->newer;
	if (l->aged == n)
		l->aged = e->older;
}

/* Puts the entry between two neighbours. */
static inline void link_entry(struct lru *l, uint32_t older, uint32_t n, uint32_t newer)
{
	l->entries[n].older = older;
	l->entries[n].newer = newer;
	l->entries[older].newer = n;
	l->entries[newer].older = n;
}

void lru_age(struct lru *l, uint32_t slot)
{
	unlink_entry(l, slot + 1);
	link_entry(l, l->aged, slot + 1, l->entries[l->aged].newer);
	l->aged = slot + 1;
}

void lru_remove(struct lru *l, uint32_t slot)
{
	const uint32_t n = slot + 1;
	struct lru_entry *e = &l->entries[n];
	uint32_t *link = lru_bucket(l, e->key);

	while (*link != n)
		link = &l->entries[*link].next;
	*link = e->next;
	unlink_entry(l, n);
	e->used = false;
	e->older = l->free;
	l->free = n;
	l->count--;
}

void lru_clear(struct lru *l)
{
	for (uint32_t slot = 0; slot < l->begun; slot++) {
		if (lru_used(l, slot))
			lru_remove(l, slot);
	}
}

/* Gives a new key an entry. There must be a free one. Returns its number. */
static inline uint32_t entry_give(struct lru *l, uint64_t key)
{
	uint32_t n = l->free, *bucket = lru_bucket(l, key);
	struct lru_entry *e;

	if (n)
		l->free = l->entries[n].older;
	else
		n = ++l->begun;
	e = &l->entries[n];
	e->key = key;
	e->used = true;
	e->next = *bucket;
	*bucket = n;
	link_entry(l, l->entries[0].older, n, 0);
	l->count++;
	return n;
}

/* Not inlined: lru_put_older() would pay for its registers. */
__attribute__((noinline)) static uint32_t entry_take(struct lru *l, uint64_t key)
{
	lru_remove(l, lru_oldest(l));
	return entry_give(l, key);
}

struct lru_found lru_put_older(struct lru *l, uint64_t key)
{
	uint32_t n = lru_find(l, key) + 1;
	const bool fresh = !n;

	if (fresh) {
		n = l->count < l->capacity ? entry_give(l, key) : entry_take(l, key);
	} else {
		unlink_entry(l, n);
		link_entry(l, l->entries[0].older, n, 0);
	}
	return (struct lru_found){n - 1, fresh};
}
