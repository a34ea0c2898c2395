/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shares the turns of a loop among the VMs that it serves. After a moment without a CPU, hundreds
 * of VMs have work at once. Done in one turn it would keep the loop's other handles waiting:
 * timers, the control socket, new connections. So the work of a VM is a task, and in each turn the
 * tasks run, in the order in which they were added, until 10 ms are used up: at least one.
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

/* Runs the task soon; once, if it waits already. Its memory must stay until it has run, or until
 * turns_drop(). */
void turns_add(uv_loop_t *loop, struct turn_task *task);
/* Does nothing if the task does not wait. */
void turns_drop(uv_loop_t *loop, struct turn_task *task);

#endif
