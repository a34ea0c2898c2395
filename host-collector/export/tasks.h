/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tasks of all machines as a trace shows them: each is announced, with its process, before its
 * first appearance, and again when its name changes. Names are escaped here.
 */
#ifndef EXPORT_TASKS_H
#define EXPORT_TASKS_H

#include "host-collector/export/trace_file.h"
#include "host-collector/model/model.h"

enum { TASKS_MAX = 32768 };

/* Stands for whoever ran on a CPU of the host while the recording does not say who. */
#define TASKS_NOBODY 0x7f000000

struct task {
	char name[TRACE_NAME_BYTES];
	int32_t tid, tgid;
	int32_t cpu; /* where it was switched to last */
	bool announced, process_announced;
	uint64_t track; /* of its slices, 0: none yet */
};

struct tasks {
	struct lru index;
	struct task *items;
	const struct model *model;
	struct trace_file *file;
	uint64_t begin; /* of the trace: announcements hold from there on */
};

int tasks_init(struct tasks *x, const struct model *m, struct trace_file *f); /* 0 or -ENOMEM */
void tasks_fini(struct tasks *x);
/* machine: TRACE_MACHINE_HOST or a VM. Borrowed until the next call. */
struct task *tasks_get(struct tasks *x, uint32_t machine, int32_t tid);
/* A TASK_NAME event of that machine. */
void tasks_named(struct tasks *x, uint32_t machine, const struct vs_event *e);
/* The track of a host's task. */
uint64_t tasks_track(struct tasks *x, int32_t tid);
/* Nobody known, on this CPU of the host. */
int32_t tasks_nobody(uint16_t cpu);

#endif
