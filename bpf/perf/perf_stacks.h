/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stacks of vCPU threads that slept long, and of the tasks that woke them, for the perf backend.
 * Each vCPU thread has a ring of the stacks with which it went to sleep. Each CPU has a ring of the
 * stacks of tasks that woke a vCPU thread there.
 *
 * Cost in the kernel: a copy of 17 KiB each time a vCPU thread goes to sleep, and another each time
 * a task with user memory wakes one.
 */
#ifndef PERF_PERF_STACKS_H
#define PERF_PERF_STACKS_H

#include <sys/types.h>

#include "bpf/perf/capture_perf.h"
#include "bpf/perf/perf_follow.h"

struct perf_stacks;

struct perf_stacks *perf_stacks_new(struct capture_perf *c); /* NULL on ENOMEM */
void perf_stacks_free(struct perf_stacks *s);
/* Records the stacks of this vCPU thread from now on. Returns 0 (also if it is recorded already) or
 * -errno. */
int perf_stacks_watch(struct perf_stacks *s, pid_t tid);
/* Open and close the ring of a CPU that comes online or goes offline. */
void perf_stacks_cpu_open(struct perf_stacks *s, size_t cpu);
void perf_stacks_cpu_close(struct perf_stacks *s, size_t cpu);
/* Look up and keep the stack for the callbacks of perf_follow_sink. A stack counts as dropped if
 * there is no room, or if it is not found and does not belong to a short wait. */
void perf_stacks_slept(struct perf_stacks *s, const struct vs_event *event, const struct task *task,
		       enum vs_stack_role role, bool sampled);
void perf_stacks_woke(struct perf_stacks *s, const struct vs_event *event, const struct task *woken,
		      const struct task *waker);
/* Call it after each replay. Copies the stacks of sleeping threads, frees the rings of threads that
 * are no longer followed, and removes records older than `cutoff` (CLOCK_MONOTONIC ns). */
void perf_stacks_tidy(struct perf_stacks *s, const struct perf_follow *f, uint64_t cutoff);
/* Passes the stacks that were found to the sink and frees them. */
void perf_stacks_deliver(struct perf_stacks *s, const struct capture_sink *sink);
/* Returns the number of dropped stacks. */
uint64_t perf_stacks_dropped(const struct perf_stacks *s);

#endif
