/* SPDX-License-Identifier: GPL-2.0-only */
/* What capture_shared.c (users) and capture_shared_pump.c (who gets what) share. */
#ifndef BACKEND_CAPTURE_SHARED_INTERNAL_H
#define BACKEND_CAPTURE_SHARED_INTERNAL_H

#include "bpf/capture/capture_internal.h"
#include "bpf/backend/capture_shared.h"
#include "bpf/backend/event_router.h"
#include "clock/sample.h"

/* Events that were read from a CPU's ring and wait for those of other CPUs, in order. */
struct shared_cpu {
	struct vs_event *events;
	size_t begin, n, capacity;
	uint32_t next_seq;
	uint64_t lost;        /* of these numbers so far */
	uint64_t newest_time; /* of what was read */
	struct capture_cpu_stats before;
};

/* One CPU's events for one user. */
struct user_queue {
	struct vs_event *events;
	size_t n, capacity;
	uint64_t emitted, dropped;
};

struct kept_stack {
	struct capture_stack stack; /* its addresses and bytes lie behind it */
	struct kept_stack *next;
};

struct capture_user {
	struct capture base;
	struct capture_shared *shared;
	unsigned int number;
	uint64_t wait_threshold_ns;
	struct user_queue *queues; /* n_cpus */
	struct kept_stack *stacks, **stacks_end;
	size_t n_stacks;
	uint64_t stacks_dropped;
	uint64_t lost;          /* of what the rings lost */
	uint64_t missed_before; /* the capture's when this user came */
};

/* The kernel's counts of VM-exits, of all VMs, as they were read last. */
struct shared_exits {
	struct shared_exit *cells;
	size_t n, capacity;
	uint64_t read_ns;
};

struct capture_shared {
	struct capture *capture;
	struct capture_backend backend; /* of the users */
	uint64_t lag_ns;
	size_t n_cpus, n_users;
	struct capture_user *users[ROUTER_USERS_MAX];
	struct event_router *router;
	struct shared_cpu *cpus;
	struct clock_sample sample; /* all events up to it have been handed out, less the lag */
	uint64_t pumped_ns;
	uint64_t unclaimed;
	uint64_t missed, missed_ns;
	struct shared_exits exits;
	int error; /* of the pump */
};

/* CLOCK_MONOTONIC. */
uint64_t shared_now_ns(void);
/* Reads the kernel's rings, unless that was just done, and gives each user what is its. 0 or
 * -errno. */
int shared_pump(struct capture_shared *s);
/* As capture_exits() for one VM. */
int shared_exits_tell(struct capture_shared *s, uint32_t vm, capture_exit_taker take,
		      void *context);

#endif
