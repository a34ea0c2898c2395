/* SPDX-License-Identifier: GPL-2.0-only */
/* The tasks of this machine by their thread ids, as a replay of the kernel's events knows them. */
#ifndef PERF_TASK_TABLE_H
#define PERF_TASK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task {
	int32_t tid, tgid; /* tid 0: nobody */
	char comm[16];
	int32_t prio;   /* 0: not seen yet */
	int32_t cpu;    /* it was switched in there last; -1: not seen yet */
	bool announced; /* by the process and name below */
	int32_t announced_tgid;
	char announced_comm[16];
	/* What the host's programs keep in struct vs_followed (follow.h). */
	bool followed, is_vcpu, by_kernel, exiting;
	uint32_t vm;
	int32_t waiting_cpu;
	int32_t waker;
	uint32_t off_state;
	uint64_t off_time, on_time;
	uint32_t halt;
	uint64_t short_ns;
};

struct task_table;

struct task_table *task_table_new(void); /* NULL on ENOMEM */
void task_table_free(struct task_table *t);
/* NULL: not known. Valid until the task is forgotten. */
struct task *task_find(const struct task_table *t, int32_t tid);
/* Finds it, or adds one of which only the id is known. NULL: out of memory, or no id of a task. */
struct task *task_get(struct task_table *t, int32_t tid);
void task_forget(struct task_table *t, struct task *task);
/* Calls `each` for every task; it may forget the one it is called for. */
void task_each(struct task_table *t, void (*each)(void *context, struct task *task), void *context);

#endif
