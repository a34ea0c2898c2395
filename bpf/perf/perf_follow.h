/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the host's BPF programs do in the kernel (host.bpf.c), done afterwards with perf's records
 * of all CPUs in the order of time: which of them concern the followed threads, which threads these
 * are by then, who waits for which CPU, and what the tasks are called. The records are vs_events of
 * the types of perf_tracepoint_host_sources() and tracepoint_sources(), and TASK_NAME for a new
 * name.
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
	/* An event for the capture's user. */
	void (*emit)(void *context, const struct vs_event *event);
	/* The record shows that one before it, of the same CPU, is missing. */
	void (*missed)(void *context, uint16_t cpu);
	/* A vCPU thread that slept from task->off_time to event->time runs again. role: WAITER, or
	 * SHORT. sampled: it stands for short waits. */
	void (*slept)(void *context, const struct vs_event *event, const struct task *task,
		      enum vs_stack_role role, bool sampled);
	/* The current task of event's CPU wakes one that has slept since woken->off_time. waker:
	 * NULL: the idle task. */
	void (*woke)(void *context, const struct vs_event *event, const struct task *woken,
		     const struct task *waker);
	void *context;
};

/* wait_threshold_ns: shorter sleeps are not told to woke(), and of them only samples to slept().
 * NULL on ENOMEM. */
struct perf_follow *perf_follow_new(const struct perf_follow_sink *sink,
				    uint64_t wait_threshold_ns);
void perf_follow_free(struct perf_follow *f);
/* From now on; it never becomes longer. */
void perf_follow_threshold(struct perf_follow *f, uint64_t wait_threshold_ns);

/* A task that existed before all records. */
void perf_follow_name(struct perf_follow *f, pid_t tid, pid_t tgid, const char comm[16]);
/* From `time` (CLOCK_MONOTONIC ns, not before that of any call so far) on. As capture_add_thread()
 * and capture_remove_thread(). */
int perf_follow_add(struct perf_follow *f, uint64_t time, pid_t tid, pid_t tgid, uint32_t vm,
		    bool is_vcpu);
int perf_follow_remove(struct perf_follow *f, uint64_t time, pid_t tid);

/* The next record, in the order of time. */
void perf_follow_record(struct perf_follow *f, const struct vs_event *event);
/* Records of this CPU were lost before the next one. */
void perf_follow_lost(struct perf_follow *f, uint16_t cpu);
/* No record older than this follows. */
void perf_follow_until(struct perf_follow *f, uint64_t time);

/* A followed thread, as of the last record; NULL: not followed. */
const struct task *perf_follow_find(const struct perf_follow *f, pid_t tid);
/* Whether it is followed once all calls have taken effect. */
bool perf_follow_will(const struct perf_follow *f, pid_t tid);
/* Whether a record of these tasks and this CPU would concern anybody, as of the last record. */
bool perf_follow_concerns(const struct perf_follow *f, const struct vs_event *event);
/*
 * perf is blind in some tasks: it leaves out what happens while it is busy in the same task, and
 * kernels on which some tasks count as busy for ever exist (seen on 6.18, the idle task among
 * them). PERF_SWITCHED_IN, made by whoever comes next, fills in when such a task left its CPU.
 * Whether the switches of this CPU have been complete for a while without it.
 */
bool perf_follow_sees_all(const struct perf_follow *f, size_t cpu);
/* Followed threads, of these waiting for a CPU (SIZE_MAX: any), new threads that were too many. */
size_t perf_follow_threads(const struct perf_follow *f);
long perf_follow_waiting(const struct perf_follow *f, size_t cpu);
uint64_t perf_follow_unfollowed(const struct perf_follow *f);
/* How often a followed thread that had slept ran again without a wake-up: what woke it ran in a
 * task in which perf is blind, or its record was lost, which is counted elsewhere as well. */
uint64_t perf_follow_unseen_wakeups(const struct perf_follow *f);

#endif
