/* SPDX-License-Identifier: GPL-2.0-only */
/* The tasks of this machine by thread id, in the state in which the replayed events left them. */
#ifndef PERF_TASK_TABLE_H
#define PERF_TASK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/capture/cpu_waits.h"

struct task {
	int32_t tid, tgid; /* tid 0: the entry is empty */
	char comm[16];
	int32_t prio;   /* kernel priority; 0: unknown */
	bool announced; /* a TASK_NAME event with the two members below was emitted */
	int32_t announced_tgid;
	char announced_comm[16];
	/* The members of struct vs_followed (follow.h). */
	bool followed, is_vcpu, by_kernel, exiting;
	uint32_t vm;
	struct cpu_waiter wait;
	int32_t waker;
	uint32_t off_state;
	uint64_t off_time, on_time;
	uint32_t halt;
	uint64_t short_ns;
};

struct task_table;

struct task_table *task_table_new(void); /* NULL on ENOMEM */
void task_table_free(struct task_table *t);
/* Returns the task, or NULL if it is not in the table. Valid until the task is removed. */
struct task *task_find(const struct task_table *t, int32_t tid);
/* Returns the task; adds it, with only its id known, if it is not in the table. Returns NULL on
 * ENOMEM or if `tid` is not a valid thread id. */
struct task *task_get(struct task_table *t, int32_t tid);
/* Removes the task. */
void task_forget(struct task_table *t, struct task *task);
/* Calls `each` for every task. `each` may remove the task that it gets. */
void task_each(struct task_table *t, void (*each)(void *context, struct task *task), void *context);

#endif
