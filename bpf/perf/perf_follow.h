/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Selects the events of a host capture through perf. The BPF programs do this in the kernel
 * (host.bpf.c). With perf, user space replays the records of all CPUs in the order of time. The
 * replay tracks which threads are followed, which of them waits for which CPU, and the names of the
 * tasks. So it decides which records concern a followed thread.
 *
 * The records are vs_events of the types of perf_tracepoint_source() and
 * tracepoint_row(), and TASK_NAME for a new name. Not thread-safe.
 */
#ifndef PERF_PERF_FOLLOW_H
#define PERF_PERF_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/perf/task_table.h"
#include "proto/event.h"

struct perf_follow;

struct perf_follow_sink {
	/* Receives an event of the capture. Borrowed. */
	void (*emit)(void *context, const struct vs_event *event);
	/* Reports that at least one record of this CPU, before the current one, is missing. */
	void (*missed)(void *context, uint16_t cpu);
	/* Reports that a vCPU thread runs again; it slept from task->off_time to event->time. role:
	 * VS_STACK_WAITER if it slept for the threshold or longer, else VS_STACK_SHORT. sampled: it
	 * is a sample of the short waits. */
	void (*slept)(void *context, const struct vs_event *event, const struct task *task,
		      enum vs_stack_role role, bool sampled);
	/* Reports that the task that runs on event->cpu wakes `woken`, a vCPU thread that has slept
	 * since woken->off_time for the threshold or longer. waker: NULL if the task is unknown or
	 * the idle task. */
	void (*woke)(void *context, const struct vs_event *event, const struct task *woken,
		     const struct task *waker);
	void *context;
};

/* Allocates a replay. wait_threshold_ns: woke() does not receive shorter sleeps, slept() receives
 * only samples of them. Returns NULL on ENOMEM. */
struct perf_follow *perf_follow_new(const struct perf_follow_sink *sink,
				    uint64_t wait_threshold_ns);
void perf_follow_free(struct perf_follow *f);
/* Lowers the threshold from the next record on. Ignores a longer threshold. */
void perf_follow_threshold(struct perf_follow *f, uint64_t wait_threshold_ns);

/* Sets the name of a task that existed before the first record. */
void perf_follow_name(struct perf_follow *f, pid_t tid, pid_t tgid, const char comm[16]);
/* Start and stop following a thread at `time` (CLOCK_MONOTONIC ns, not earlier than in any previous
 * call); see capture_add_thread() and capture_remove_thread(). Return 0 or -errno: add -EINVAL,
 * -ENOSPC (too many threads), -ESRCH (no such thread), -ENOMEM; remove -ENOENT (not followed),
 * -ENOMEM. */
int perf_follow_add(struct perf_follow *f, uint64_t time, pid_t tid, pid_t tgid, uint32_t vm,
		    bool is_vcpu);
int perf_follow_remove(struct perf_follow *f, uint64_t time, pid_t tid);

/* Emits the name of a task at the time and on the CPU of `at`, unless its last emitted name is the
 * same. */
void perf_follow_announce(struct perf_follow *f, const struct vs_event *at, pid_t tid);

/* Replays the next record. Records come in the order of time. */
void perf_follow_record(struct perf_follow *f, const struct vs_event *event);
/* States that records of this CPU were lost before the next record. */
void perf_follow_lost(struct perf_follow *f, uint16_t cpu);
/* States that no record older than `time` follows (CLOCK_MONOTONIC ns). */
void perf_follow_until(struct perf_follow *f, uint64_t time);

/* Returns a followed thread, as of the last record, or NULL if it is not followed. Borrowed; valid
 * until the next record. */
const struct task *perf_follow_find(const struct perf_follow *f, pid_t tid);
/* Returns whether the thread is followed once all calls of add and remove have taken effect. */
bool perf_follow_will(const struct perf_follow *f, pid_t tid);
/* Returns whether a record of these tasks and this CPU concerns a followed thread, as of the last
 * record. */
bool perf_follow_concerns(const struct perf_follow *f, const struct vs_event *event);
/* Returns true if perf has delivered every switch of `cpu` for thousands of switches, so that none
 * of them had to be taken from PERF_SWITCHED_IN.
 *
 * perf drops events of a task while it already handles an event of this task. On some kernels some
 * tasks always count as handling one (seen on 6.18, also for the idle task), so their events never
 * arrive. When such a task leaves its CPU, the record PERF_SWITCHED_IN of the next task replaces
 * the missing switch. */
bool perf_follow_sees_all(const struct perf_follow *f, size_t cpu);
/* Return the number of followed threads, of followed threads that wait for `cpu` (SIZE_MAX: for any
 * CPU), and of threads that were not followed because there were too many. */
size_t perf_follow_threads(const struct perf_follow *f);
long perf_follow_waiting(const struct perf_follow *f, size_t cpu);
uint64_t perf_follow_unfollowed(const struct perf_follow *f);
/* Returns how often a followed thread that had slept ran again without a wake-up. Either its waker
 * ran in a task whose events perf drops, or the record was lost; such a loss is also counted as
 * lost. */
uint64_t perf_follow_unseen_wakeups(const struct perf_follow *f);

#endif
