/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stacks of a perf capture's vCPU threads when they slept long, and of who woke them. Every
 * thread has a ring that keeps where it left its CPU lately; every CPU has one for who woke such a
 * thread there.
 *
 * Cost in the kernel: a copy of 17 KiB for every time such a thread goes to sleep, and another for
 * every time a task with user memory wakes one.
 */
#ifndef PERF_PERF_STACKS_H
#define PERF_PERF_STACKS_H

#include <sys/types.h>

#include "bpf/perf/capture_perf.h"
#include "bpf/perf/perf_follow.h"

struct perf_stacks;

struct perf_stacks *perf_stacks_new(struct capture_perf *c); /* NULL on ENOMEM */
void perf_stacks_free(struct perf_stacks *s);
/* 0 or -errno. */
int perf_stacks_watch(struct perf_stacks *s, pid_t tid);
void perf_stacks_cpu_open(struct perf_stacks *s, size_t cpu);
void perf_stacks_cpu_close(struct perf_stacks *s, size_t cpu);
/* See perf_follow_sink. */
void perf_stacks_slept(struct perf_stacks *s, const struct vs_event *event, const struct task *task,
		       enum vs_stack_role role, bool sampled);
void perf_stacks_woke(struct perf_stacks *s, const struct vs_event *event, const struct task *woken,
		      const struct task *waker);
/* After a replay: keeps where those are who sleep, and lets go of what is not needed any more, of
 * threads too. */
void perf_stacks_tidy(struct perf_stacks *s, const struct perf_follow *f, uint64_t cutoff);
/* Hands over what was found. */
void perf_stacks_deliver(struct perf_stacks *s, const struct capture_sink *sink);
/* Stacks that were not to be had, or found no room. */
uint64_t perf_stacks_dropped(const struct perf_stacks *s);

#endif
