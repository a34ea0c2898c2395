/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/waiters.h"

#include <errno.h>
#include <stdlib.h>

int waiters_init(struct waiters *w)
{
	int err = lru_init(&w->index, WAITERS_MAX);

	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		w->forgotten[i].ns = INT64_MIN;
	w->items = err ? NULL : calloc(WAITERS_MAX, sizeof(*w->items));
	if (!w->items) {
		waiters_fini(w);
		return -ENOMEM;
	}
	return 0;
}

void waiters_fini(struct waiters *w)
{
	lru_fini(&w->index);
	free(w->items);
	w->items = NULL;
}

void waiters_add(struct waiters *w, int32_t pid, uint16_t cpu, struct host_ns t)
{
	bool fresh;
	struct waiter *waiter = &w->items[lru_put(&w->index, (uint32_t)pid, &fresh)];

	waiter->cpu = cpu;
	if (fresh || waiter->since.ns < w->forgotten[cpu].ns)
		waiter->since = t;
}

void waiters_move(struct waiters *w, int32_t pid, uint16_t cpu)
{
	uint32_t slot = lru_find(&w->index, (uint32_t)pid);

	if (slot != LRU_NONE)
		w->items[slot].cpu = cpu;
}

void waiters_remove(struct waiters *w, int32_t pid)
{
	/* Mostly no task waits any more: no search is needed. */
	uint32_t slot = w->index.count ? lru_find(&w->index, (uint32_t)pid) : LRU_NONE;

	if (slot != LRU_NONE)
		lru_remove(&w->index, slot);
}

void waiters_forget(struct waiters *w, uint16_t cpu, struct host_ns t)
{
	w->forgotten[cpu] = t;
}

struct waiters_summary waiters_summarise(const struct waiters *w, uint16_t cpu,
					 struct host_ns begin, struct host_ns end, int64_t than_ns)
{
	struct waiters_summary summary = {0};

	for (uint32_t slot = 0; slot < lru_slots(&w->index); slot++) {
		const struct waiter *waiter = &w->items[slot];
		int64_t since, ns;

		if (!lru_used(&w->index, slot) || waiter->cpu != cpu ||
		    waiter->since.ns < w->forgotten[cpu].ns)
			continue;
		since = waiter->since.ns > begin.ns ? waiter->since.ns : begin.ns;
		ns = end.ns - since;
		if (ns >= than_ns)
			summary.count++;
		if (ns > summary.ns) {
			summary.ns = ns;
			summary.pid = (int32_t)lru_key(&w->index, slot);
		}
	}
	return summary;
}
