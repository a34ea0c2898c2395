/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the tasks of all machines (the host and the VMs) as a trace shows them. The trace gets the
 * name and the process of a task before the task first appears, and again when its name changes.
 * This module escapes the names.
 */
#ifndef EXPORT_TASKS_H
#define EXPORT_TASKS_H

#include "host-collector/export/trace_file.h"
#include "host-collector/model/model.h"

enum { TASKS_MAX = 32768 };

/* Process of the pseudo-tasks that are shown on a CPU of the host while the recording does not
 * show which task ran. */
#define TASKS_NOBODY 0x7f000000

struct task {
	char name[TRACE_NAME_BYTES];
	int32_t tid, tgid;
	int32_t cpu; /* CPU to which it was switched last */
	bool announced, process_announced;
	uint64_t track; /* track of its slices, 0: none yet */
};

struct tasks {
	struct lru index;
	struct task *items;
	const struct model *model;
	struct trace_file *file;
	uint64_t begin; /* begin of the trace; announcements carry this time */
};

int tasks_init(struct tasks *x, const struct model *m,
	       struct trace_file *f); /* returns 0 or -ENOMEM */
void tasks_fini(struct tasks *x);
/* Returns a task and announces it if necessary. machine: TRACE_MACHINE_HOST or a VM. Borrowed
 * until the next call. */
struct task *tasks_get(struct tasks *x, uint32_t machine, int32_t tid);
/* Applies a TASK_NAME event of that machine. */
void tasks_named(struct tasks *x, uint32_t machine, const struct vs_event *e);
/* Returns the track of a host task. */
uint64_t tasks_track(struct tasks *x, int32_t tid);
/* Returns a tid that stands for an unknown task on this CPU of the host. No real task has it. */
int32_t tasks_nobody(uint16_t cpu);
bool tasks_is_nobody(int32_t tid);

#endif
