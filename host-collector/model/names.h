/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps the names of the tasks of one machine, by boot of its kernel (0 is the first) and thread
 * id. The table is bounded: when it is full, the least recently named task is removed. */
#ifndef MODEL_NAMES_H
#define MODEL_NAMES_H

#include <stdint.h>

#include "host-collector/util/lru.h"
#include "proto/event.h"

enum { NAMES_MAX = 8192 };

struct task_name {
	char comm[16];
	int32_t tgid;
};

struct names {
	struct lru index;
	struct task_name *tasks;
};

int names_init(struct names *n); /* returns 0 or -ENOMEM */
void names_fini(struct names *n);
/* Processes a TASK_NAME or TASK_EXIT event. The name of a dead task is kept until its slot is
 * needed; the task that died first loses its name first. */
void names_event(struct names *n, uint32_t boot, const struct vs_event *e);
void names_set(struct names *n, uint32_t boot, int32_t pid, int32_t tgid, const char *comm);
/* Returns a task's name, or "" if it is unknown. Borrowed until the next change. */
const char *names_get(const struct names *n, uint32_t boot, int32_t pid);
/* Returns the task's process id, or 0 if it is unknown. */
int32_t names_tgid(const struct names *n, uint32_t boot, int32_t pid);

#endif
