/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracks, for each CPU, which followed threads are runnable and wait for it. The caller passes the
 * switches, wake-ups and migrations of the host in the order of time. Each thread belongs to a user
 * of the capture (capture_shared.h). A switch on a CPU also concerns the users whose threads wait
 * for that CPU, because it shows which tasks run there instead. host.bpf.c does the same in the
 * kernel, for all users together.
 *
 * The caller owns the threads and finds them by their ids. It passes NULL for a task that is not
 * followed. Cost: a few loads per event.
 */
#ifndef CAPTURE_CPU_WAITS_H
#define CAPTURE_CPU_WAITS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/capture/user_set.h"
#include "proto/event.h"

enum { CPU_WAITS_TASK_UNKNOWN = -1 };

/* The part of a thread that this module keeps. A new thread has {user, -1, -1}. */
struct cpu_waiter {
	unsigned int user;   /* below the number of users */
	int32_t waiting_cpu; /* CPU for which the thread waits; -1: it does not wait */
	int32_t cpu;         /* CPU where it ran last; -1: unknown */
};

struct cpu_waits;

/* n_users: at most USER_SET_MAX. Returns NULL on ENOMEM. */
struct cpu_waits *cpu_waits_new(size_t n_cpus, size_t n_users);
void cpu_waits_free(struct cpu_waits *w);

/* Each of these handles one event: a switch from `out` to `in`, a wake-up of `t`, a migration of
 * `t`. A wake-up of a thread that runs or already waits changes nothing. Such a thread was woken
 * before it had left its CPU, or was woken twice. */
void cpu_waits_switch(struct cpu_waits *w, const struct vs_event *e, struct cpu_waiter *out,
		      struct cpu_waiter *in);
void cpu_waits_wakeup(struct cpu_waits *w, const struct vs_event *e, struct cpu_waiter *t);
void cpu_waits_migrate(struct cpu_waits *w, const struct vs_event *e, struct cpu_waiter *t);
/* Stops counting a thread, which is no longer followed. */
void cpu_waits_leave(struct cpu_waits *w, struct cpu_waiter *t);
/* Notes that events of this CPU were lost: which task runs there is unknown until its next switch.
 */
void cpu_waits_lost(struct cpu_waits *w, size_t cpu);

/* Adds the users whose threads wait for the CPU to `out`. */
void cpu_waits_users(const struct cpu_waits *w, size_t cpu, struct user_set *out);
/* Returns the number of threads that wait for the CPU. */
uint32_t cpu_waits_count(const struct cpu_waits *w, size_t cpu);
/* Returns the task that was switched in last, or CPU_WAITS_TASK_UNKNOWN. */
int32_t cpu_waits_running(const struct cpu_waits *w, size_t cpu);

#endif
