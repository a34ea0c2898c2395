/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/task_table.h"

#include <stdlib.h>

enum {
	PIDS_MAX = 1 << 22, /* the kernel's own limit */
	CHUNK = 256,
	N_CHUNKS = PIDS_MAX / CHUNK,
};

struct chunk {
	size_t n;
	struct task tasks[CHUNK];
};

struct task_table {
	struct chunk *chunks[N_CHUNKS];
};

struct task_table *task_table_new(void)
{
	return calloc(1, sizeof(struct task_table));
}

void task_table_free(struct task_table *t)
{
	for (size_t i = 0; t && i < N_CHUNKS; i++)
		free(t->chunks[i]);
	free(t);
}

struct task *task_find(const struct task_table *t, int32_t tid)
{
	const struct chunk *chunk =
		tid > 0 && tid < PIDS_MAX ? t->chunks[(uint32_t)tid / CHUNK] : NULL;
	const struct task *task = chunk ? &chunk->tasks[(uint32_t)tid % CHUNK] : NULL;

	return task && task->tid ? (struct task *)(uintptr_t)task : NULL;
}

struct task *task_get(struct task_table *t, int32_t tid)
{
	struct chunk **chunk;
	struct task *task;

	if (tid <= 0 || tid >= PIDS_MAX)
		return NULL;
	chunk = &t->chunks[(uint32_t)tid / CHUNK];
	if (!*chunk)
		*chunk = calloc(1, sizeof(**chunk));
	if (!*chunk)
		return NULL;
	task = &(*chunk)->tasks[(uint32_t)tid % CHUNK];
	if (!task->tid) {
		*task = (struct task){.tid = tid, .wait = {0, -1, -1}, .waker = -1};
		(*chunk)->n++;
	}
	return task;
}

void task_forget(struct task_table *t, struct task *task)
{
	struct chunk **chunk = &t->chunks[(uint32_t)task->tid / CHUNK];

	task->tid = 0;
	if (--(*chunk)->n)
		return;
	free(*chunk);
	*chunk = NULL;
}

void task_each(struct task_table *t, void (*each)(void *context, struct task *task), void *context)
{
	for (size_t i = 0; i < N_CHUNKS; i++) {
		for (size_t k = 0; t->chunks[i] && k < CHUNK; k++) {
			if (t->chunks[i]->tasks[k].tid)
				each(context, &t->chunks[i]->tasks[k]);
		}
	}
}
