/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tasks of one guest that are ready to run and do not run: woken or preempted, and not run
 * since. At most WAITERS_MAX tasks are kept; the least recently used one makes room. So a guest
 * that invents tasks affects only its own report.
 */
#ifndef STALL_WAITERS_H
#define STALL_WAITERS_H

#include "clock/types.h"
#include "host-collector/util/lru.h"
#include "proto/message.h"

enum { WAITERS_MAX = 4096 };

struct waiter {
	uint16_t cpu;
	struct host_ns since;
};

struct waiters {
	struct lru index; /* by pid */
	struct waiter *items;
	struct host_ns forgotten[VS_CPUS_MAX]; /* waits that began earlier do not count */
};

int waiters_init(struct waiters *w); /* returns 0 or -ENOMEM */
void waiters_fini(struct waiters *w);
/* Records that `pid` has waited for `cpu` since `t`. A task that waits already keeps its earlier
 * `since`, unless waiters_forget has invalidated it. */
void waiters_add(struct waiters *w, int32_t pid, uint16_t cpu, struct host_ns t);
/* Moves a waiting task to `cpu`. Does nothing if `pid` does not wait. */
void waiters_move(struct waiters *w, int32_t pid, uint16_t cpu);
void waiters_remove(struct waiters *w, int32_t pid);
/* Events of `cpu` before `t` were lost. Waits for `cpu` that began before `t` do not count any
 * more. */
void waiters_forget(struct waiters *w, uint16_t cpu, struct host_ns t);

struct waiters_summary {
	int32_t pid;    /* the task that waits longest */
	int64_t ns;     /* its wait within [begin, end]; 0: no task is known to wait */
	unsigned count; /* number of tasks that have waited for at least `than_ns` */
};
/* Summarizes the tasks that wait for `cpu` at `end`. */
struct waiters_summary waiters_summarise(const struct waiters *w, uint16_t cpu,
					 struct host_ns begin, struct host_ns end, int64_t than_ns);

#endif
