/* SPDX-License-Identifier: GPL-2.0-only */
/* Task names of one machine, by its kernel's boot (0 the first) and thread id: a bounded table, the
 * least recently named go first. */
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

int names_init(struct names *n); /* 0 or -ENOMEM */
void names_fini(struct names *n);
/* Takes a TASK_NAME event, or a TASK_EXIT: a dead task's name stays until room is needed. */
void names_event(struct names *n, uint32_t boot, const struct vs_event *e);
void names_set(struct names *n, uint32_t boot, int32_t pid, int32_t tgid, const char *comm);
/* "" if unknown. Borrowed until the next change. */
const char *names_get(const struct names *n, uint32_t boot, int32_t pid);
/* Its process; 0 unknown. */
int32_t names_tgid(const struct names *n, uint32_t boot, int32_t pid);

#endif
