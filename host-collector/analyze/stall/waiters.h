/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tasks of one guest that want a CPU and have none: woken or preempted, and not run since.
 * Bounded: of more than WAITERS_MAX the earliest added are forgotten, so a guest that invents tasks
 * harms its own report only.
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
	struct host_ns forgotten[VS_CPUS_MAX]; /* who began to wait earlier is not believed */
};

int waiters_init(struct waiters *w); /* 0 or -ENOMEM */
void waiters_fini(struct waiters *w);
/* `pid` wants `cpu` since `t`; it keeps an earlier `since`. */
void waiters_add(struct waiters *w, int32_t pid, uint16_t cpu, struct host_ns t);
/* Wherever it waits, it now waits for `cpu`. */
void waiters_move(struct waiters *w, int32_t pid, uint16_t cpu);
void waiters_remove(struct waiters *w, int32_t pid);
/* Events of `cpu` were lost until `t`: nobody knows who still waits there. */
void waiters_forget(struct waiters *w, uint16_t cpu, struct host_ns t);

struct waiters_summary {
	int32_t pid;    /* who waits longest */
	int64_t ns;     /* since when, within [begin, end] */
	unsigned count; /* how many have waited for at least `than_ns` */
};
/* Who waits for `cpu`, at `end`; ns 0 and count 0: nobody does, as far as is known. */
struct waiters_summary waiters_summarise(const struct waiters *w, uint16_t cpu,
					 struct host_ns begin, struct host_ns end, int64_t than_ns);

#endif
