/* SPDX-License-Identifier: GPL-2.0-only */
/* Where tasks of the host come from, by thread id: a bounded table, the least recently told go
 * first. */
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
	struct host_ns seen, began; /* an event of it; it began then, or a tick later */
	uint32_t cgroup;            /* by model_cgroup_of(), 0 unknown */
	char vm[VS_TEXT_MAX];       /* it is a thread of this VM's VMM; "": of none */
	bool vcpu_known;
	uint32_t vcpu;
	bool claimed; /* nobody but its own user, uid, says that it is this VM */
	uint32_t uid;
};

struct origins {
	struct lru index;
	struct task_origin *all; /* NULL: none was told */
};

void origins_fini(struct origins *o);
/* Copied. 0 or -ENOMEM. */
int origins_set(struct origins *o, const struct task_origin *origin);
/* A thread of this id was announced at `t`: what was known of it before is another task's, or may
 * be out of date. */
void origins_announced(struct origins *o, int32_t tid, struct host_ns t);
/* NULL if unknown. Valid until the next change. */
const struct task_origin *origins_get(const struct origins *o, int32_t tid);

#endif
