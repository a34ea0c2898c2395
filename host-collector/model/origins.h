/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps where tasks of the host come from (cgroup, VM, user), by thread id. The table is bounded:
 * when it is full, the least recently set entry is removed. */
#ifndef MODEL_ORIGINS_H
#define MODEL_ORIGINS_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/types.h"
#include "host-collector/util/lru.h"
#include "proto/message_config.h"

enum { ORIGINS_MAX = 2048 };

struct task_origin {
	int32_t tid, tgid;
	/* seen: time of one of the task's events. began: the task began at this time or up to a
	 * tick later. */
	struct host_ns seen, began;
	uint32_t cgroup; /* by model_cgroup_of(); 0: unknown */
	const char *vm;  /* the VM to whose VMM the thread belongs; NULL: none */
	bool vcpu_known;
	uint32_t vcpu;
	/* The name of the VM is only a claim of a process of user `uid`. */
	bool claimed;
	uint32_t uid;
};

struct origin_entry {
	struct task_origin origin;
	char *vm; /* origin.vm */
};

struct origins {
	struct lru index;
	struct origin_entry *all; /* NULL until the first entry */
};

void origins_fini(struct origins *o);
/* Adds or replaces a copy of an entry and of its text. Returns 0 or -ENOMEM. */
int origins_set(struct origins *o, const struct task_origin *origin);
/* A thread with this id was announced at `t`: removes an older entry, which belongs to another
 * task or may be out of date. */
void origins_announced(struct origins *o, int32_t tid, struct host_ns t);
/* Returns the entry of a thread, or NULL. Valid until the next change. */
const struct task_origin *origins_get(const struct origins *o, int32_t tid);

#endif
