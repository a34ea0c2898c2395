// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/array.h"

/* The generator's state is a counter: seeds that its step divides would share their numbers,
 * shifted. */
void engine_init(struct engine *e, uint64_t seed)
{
	memset(e, 0, sizeof(*e));
	e->random = seed;
	e->random = engine_random(e);
}

void engine_fini(struct engine *e)
{
	free(e->heap);
	e->heap = NULL;
}

static bool before(const struct engine_entry *a, const struct engine_entry *b)
{
	return a->t != b->t ? a->t < b->t : a->order < b->order;
}

static void swap(struct engine_entry *a, struct engine_entry *b)
{
	struct engine_entry kept = *a;

	*a = *b;
	*b = kept;
}

void engine_at(struct engine *e, int64_t t, engine_action action, void *object, uint64_t argument)
{
	size_t at = e->n;

	if (e->error)
		return;
	e->error = ARRAY_RESERVE(&e->heap, e->n, &e->capacity, 256);
	if (e->error)
		return;
	e->heap[e->n++] = (struct engine_entry){
		.t = t < e->now ? e->now : t,
		.order = e->planned++,
		.action = action,
		.object = object,
		.argument = argument,
	};
	for (; at && before(&e->heap[at], &e->heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&e->heap[at], &e->heap[(at - 1) / 2]);
}

static struct engine_entry take(struct engine *e)
{
	struct engine_entry first = e->heap[0];
	size_t at = 0;

	e->heap[0] = e->heap[--e->n];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < e->n && before(&e->heap[child + 1], &e->heap[child]))
			child++;
		if (child >= e->n || !before(&e->heap[child], &e->heap[at]))
			return first;
		swap(&e->heap[at], &e->heap[child]);
		at = child;
	}
}

int engine_run(struct engine *e, int64_t t)
{
	while (!e->error && e->n && e->heap[0].t <= t) {
		struct engine_entry due = take(e);

		e->now = due.t;
		due.action(due.object, due.argument);
	}
	e->now = t;
	return e->error;
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators). */
uint64_t engine_random(struct engine *e)
{
	uint64_t z = e->random += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

int64_t engine_between(struct engine *e, int64_t low, int64_t high)
{
	return low + (int64_t)(engine_random(e) % (uint64_t)(high - low + 1));
}

bool engine_chance(struct engine *e, double p)
{
	return (double)(engine_random(e) >> 11) / 9007199254740992.0 < p;
}
