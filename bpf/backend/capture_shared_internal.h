/* SPDX-License-Identifier: GPL-2.0-only */
/* The data that capture_shared.c (users), capture_shared_pump.c (distribution of the events) and
 * capture_shared_exits.c (counted exits) share. */
#ifndef BACKEND_CAPTURE_SHARED_INTERNAL_H
#define BACKEND_CAPTURE_SHARED_INTERNAL_H

#include "bpf/capture/capture_internal.h"
#include "bpf/backend/capture_shared.h"
#include "bpf/backend/event_queue.h"
#include "bpf/backend/event_router.h"
#include "clock/sample.h"

/* Events of a CPU that were read from its ring. They wait, in order, for events of other CPUs. */
struct shared_cpu {
	struct event_queue queue;
	size_t begin; /* the first event of the queue that is not handed out; 0 between pumps */
	uint32_t next_seq;
	uint64_t lost;        /* number of lost sequence numbers so far */
	uint64_t newest_time; /* CLOCK_MONOTONIC ns of the newest event read */
	struct capture_cpu_stats before;
};

/* Events of a CPU for one user. */
struct user_queue {
	struct event_queue queue;
	uint64_t emitted, dropped;
};

struct kept_stack {
	struct capture_stack stack; /* its addresses and bytes follow this struct */
	struct kept_stack *next;
};

struct capture_user {
	struct capture base;
	struct capture_shared *shared;
	unsigned int number;
	uint64_t wait_threshold_ns;
	struct user_queue *queues; /* n_cpus elements */
	size_t n_queued;           /* number of events in them */
	struct kept_stack *stacks, **stacks_end;
	size_t n_stacks;
	/* NULL: the user knows no stacks */
	uint32_t (*stack_find)(void *context, const struct capture_stack *stack);
	void *stack_find_context;
	uint64_t stacks_dropped;
	uint64_t lost; /* number of events that the rings lost, whichever user they concerned */
	uint64_t missed_before; /* the capture's count when this user was added */
};

/* The counted VM-exits of all VMs, as last read from the kernel. */
struct shared_exits {
	struct shared_exit *cells;
	size_t n, capacity;
	uint64_t read_ns;
};

/* An event that users chose. Users who chose the same one share it. */
struct shared_event {
	uint32_t id;           /* the id that the event has in `capture` */
	struct user_set users; /* none: the element is free */
	struct capture_event event;
};

enum { SHARED_SAMPLES = 8 }; /* more samples than are taken between two drains of a user */

struct capture_shared {
	struct capture *capture;
	struct capture_backend backend; /* used by all users' captures */
	uint64_t lag_ns;
	size_t n_cpus, n_users;
	size_t n_queued; /* number of events in the queues of all users */
	struct capture_user *users[ROUTER_USERS_MAX];
	struct user_set joined; /* the numbers of `users` */
	struct event_router *router;
	struct shared_cpu *cpus;
	struct clock_sample sample; /* all events that are older than this by more than the lag are
				       in the queues */
	struct clock_sample samples[SHARED_SAMPLES]; /* the newest samples; the last is `sample` */
	uint64_t n_samples;                          /* number of samples ever taken */
	uint64_t pumped_ns;
	uint64_t unclaimed;
	uint64_t missed, missed_ns;
	struct shared_exits exits;
	struct shared_event events[VS_USER_SLOTS_MAX];
	int error; /* -errno of the current pump */
};

/* Reads the kernel's rings, unless that was done within the last 5 ms, and gives each user its
 * events. Returns 0 or -errno. */
int shared_pump(struct capture_shared *s);
/* Does capture_exits() for one VM. */
int shared_exits_emit(struct capture_shared *s, uint32_t vm, capture_exit_taker take,
		      void *context);

#endif
