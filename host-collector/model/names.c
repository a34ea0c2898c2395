/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/event_fields.h"

int names_init(struct names *n)
{
	int err = lru_init(&n->index, NAMES_MAX);

	n->tasks = err ? NULL : calloc(NAMES_MAX, sizeof(*n->tasks));
	if (!n->tasks) {
		names_fini(n);
		return -ENOMEM;
	}
	return 0;
}

void names_fini(struct names *n)
{
	lru_fini(&n->index);
	free(n->tasks);
	n->tasks = NULL;
}

static uint64_t name_key(uint32_t boot, int32_t pid)
{
	return (uint64_t)boot << 32 | (uint32_t)pid;
}

void names_set(struct names *n, uint32_t boot, int32_t pid, int32_t tgid, const char *comm)
{
	bool fresh;
	struct task_name *task = &n->tasks[lru_put(&n->index, name_key(boot, pid), &fresh)];

	memset(task, 0, sizeof(*task));
	memcpy(task->comm, comm, strnlen(comm, sizeof(task->comm) - 1));
	task->tgid = tgid;
}

void names_event(struct names *n, uint32_t boot, const struct vs_event *e)
{
	if (e->type == VS_EVENT_TASK_NAME) {
		char comm[16];

		ev_task_comm(e, comm);
		names_set(n, boot, e->pid, e->pid2, comm);
	} else if (e->type == VS_EVENT_TASK_EXIT) {
		uint32_t slot = lru_find(&n->index, name_key(boot, e->pid));

		if (slot != LRU_NONE)
			lru_age(&n->index, slot);
	}
}

const char *names_get(const struct names *n, uint32_t boot, int32_t pid)
{
	uint32_t slot = lru_find(&n->index, name_key(boot, pid));

	return slot == LRU_NONE ? "" : n->tasks[slot].comm;
}

int32_t names_tgid(const struct names *n, uint32_t boot, int32_t pid)
{
	uint32_t slot = lru_find(&n->index, name_key(boot, pid));

	return slot == LRU_NONE ? 0 : n->tasks[slot].tgid;
}
