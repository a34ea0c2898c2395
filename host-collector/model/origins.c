/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/origins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The time of the same event on the timeline, and by the clocks known when the origin was
 * received. */
static const int64_t same_event_ns = 1000000;

void origins_fini(struct origins *o)
{
	for (uint32_t i = 0; o->all && i < ORIGINS_MAX; i++)
		free(o->all[i].vm);
	if (o->all)
		lru_fini(&o->index);
	free(o->all);
	o->all = NULL;
}

static int begin(struct origins *o)
{
	if (lru_init(&o->index, ORIGINS_MAX))
		return -ENOMEM;
	o->all = calloc(ORIGINS_MAX, sizeof(*o->all));
	if (!o->all) {
		lru_fini(&o->index);
		return -ENOMEM;
	}
	return 0;
}

int origins_set(struct origins *o, const struct task_origin *origin)
{
	struct origin_entry *entry;
	char *vm = NULL;
	bool fresh;

	if (!o->all && begin(o))
		return -ENOMEM;
	/* Few tasks belong to a VM: a text of fixed size in each entry would be most of it. */
	if (origin->vm) {
		vm = strdup(origin->vm);
		if (!vm)
			return -ENOMEM;
	}
	entry = &o->all[lru_put(&o->index, (uint32_t)origin->tid, &fresh)];
	free(entry->vm);
	*entry = (struct origin_entry){.origin = *origin, .vm = vm};
	entry->origin.vm = vm;
	return 0;
}

void origins_announced(struct origins *o, int32_t tid, struct host_ns t)
{
	uint32_t slot = o->all ? lru_find(&o->index, (uint32_t)tid) : LRU_NONE;

	if (slot != LRU_NONE && t.ns > o->all[slot].origin.seen.ns + same_event_ns)
		lru_remove(&o->index, slot);
}

const struct task_origin *origins_get(const struct origins *o, int32_t tid)
{
	uint32_t slot = o->all ? lru_find(&o->index, (uint32_t)tid) : LRU_NONE;

	return slot == LRU_NONE ? NULL : &o->all[slot].origin;
}
