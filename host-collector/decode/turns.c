/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/turns.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

static const uint64_t turn_ns = 10000000;

struct turns {
	uv_idle_t idle; /* active while a task waits */
	struct turn_task *first, *last;
};

/* Of the one loop of this process that shares its turns. The loop's `data` is not used, because
 * uv_loop_init() leaves it as it was. */
static struct turns *shared;

static struct turns *turns_of(const uv_loop_t *loop)
{
	return shared && shared->idle.loop == loop ? shared : NULL;
}

static void unlink_task(struct turns *t, struct turn_task *task)
{
	if (task->before)
		task->before->next = task->next;
	else
		t->first = task->next;
	if (task->next)
		task->next->before = task->before;
	else
		t->last = task->before;
	task->next = task->before = NULL;
	task->waits = false;
}

static void on_idle(uv_idle_t *idle)
{
	struct turns *t = idle->data;
	const uint64_t begin_ns = uv_hrtime();

	while (t->first) {
		struct turn_task *task = t->first;

		unlink_task(t, task);
		task->run(task);
		if (uv_hrtime() - begin_ns >= turn_ns)
			return;
	}
	uv_idle_stop(idle);
}

int turns_open(uv_loop_t *loop)
{
	struct turns *t;

	if (shared)
		return -EBUSY;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	uv_idle_init(loop, &t->idle);
	t->idle.data = t;
	shared = t;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void turns_close(uv_loop_t *loop)
{
	struct turns *t = turns_of(loop);

	if (!t)
		return;
	while (t->first)
		unlink_task(t, t->first);
	uv_close((uv_handle_t *)&t->idle, on_closed);
	shared = NULL;
}

void turns_add(uv_loop_t *loop, struct turn_task *task)
{
	struct turns *t = turns_of(loop);

	if (!t) {
		task->run(task);
		return;
	}
	if (task->waits)
		return;
	task->waits = true;
	task->before = t->last;
	if (t->last)
		t->last->next = task;
	else
		t->first = task;
	t->last = task;
	uv_idle_start(&t->idle, on_idle);
}

void turns_drop(uv_loop_t *loop, struct turn_task *task)
{
	if (task->waits)
		unlink_task(turns_of(loop), task);
}
