/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shares the turns of a loop among the VMs that it serves. If the process had no CPU for a moment,
 * hundreds of VMs have work at once. If one turn did all this work, the loop's other handles
 * (timers, the control socket, new connections) would have to wait. So the work of a VM is a task.
 * Each turn runs the tasks in the order in which they were added, until 10 ms are used up, but at
 * least one.
 *
 * A loop without turns_open() has one VM: its tasks run at once.
 */
#ifndef DECODE_TURNS_H
#define DECODE_TURNS_H

#include <stdbool.h>
#include <uv.h>

struct turn_task {
	void (*run)(struct turn_task *task); /* may add this task, or others */
	bool waits;
	struct turn_task *next, *before; /* while it waits */
};

/* Makes the loop share its turns. Call it and the other functions from the loop's thread. Returns
 * 0, -ENOMEM, or -EBUSY: another loop of this process shares its turns. */
int turns_open(uv_loop_t *loop);
/* Drops the tasks that wait. The loop's next turn frees the memory. Does nothing if turns_open()
 * was not called. */
void turns_close(uv_loop_t *loop);

/* Adds the task, which runs in one of the next turns. Does nothing if the task waits already. Its
 * memory must stay until it has run, or until turns_drop(). */
void turns_add(uv_loop_t *loop, struct turn_task *task);
/* Removes the task if it waits. */
void turns_drop(uv_loop_t *loop, struct turn_task *task);

#endif
