/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the tests that compare the events of the BPF backend with those of the perf backend. */
#ifndef TESTS_UNIT_CAPTURE_COMPARE_H
#define TESTS_UNIT_CAPTURE_COMPARE_H

#include "tests/unit/capture_log.h"

/* pid_max is at most this. */
enum { PIDS = 1 << 22 };

/* Returns, by pid, whether a task is one of `children` or was created by one of them. The caller
 * frees the array. */
static inline bool *pids_of(const struct log *log, const pid_t *children, size_t n_children)
{
	bool *ours = calloc(PIDS, sizeof(*ours));

	assert_non_null(ours);
	for (size_t i = 0; i < n_children; i++)
		ours[children[i]] = true;
	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		/* A thread names its process; a new process is woken by its parent. */
		if ((e->type == VS_EVENT_TASK_NAME || e->type == VS_EVENT_SCHED_WAKEUP_NEW) &&
		    e->pid > 0 && e->pid2 > 0 && ours[e->pid2])
			ours[e->pid] = true;
	}
	return ours;
}

static inline int by_kind(const void *a, const void *b)
{
	const struct vs_event *x = a, *y = b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->time > y->time) - (x->time < y->time);
}

/* Returns the index of a task in arrays of TASK_KEYS. The idle tasks of all CPUs have pid 0, so
 * their CPU distinguishes them. */
static inline size_t task_key(const struct vs_event *e, int pid)
{
	return pid ? (size_t)pid : (size_t)PIDS + e->cpu;
}

enum { TASK_KEYS = PIDS + VS_CPU_COLLECTOR };

/* Returns the pid of the task in which the event happened; -1: the event does not show it. */
static inline int current_of(const struct vs_event *e)
{
	switch (e->type) {
	case VS_EVENT_SCHED_WAKEUP:
	case VS_EVENT_SCHED_WAKEUP_NEW:
	case VS_EVENT_SCHED_MIGRATE:
		return e->pid2;
	case VS_EVENT_TASK_NAME:
		return -1;
	default:
		return e->pid;
	}
}

static inline void blind_drop(struct log *log, const bool *blind)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];
		const int current = current_of(e);

		if (current < 0 || !blind[task_key(e, current)])
			log->events[n++] = *e;
	}
	log->n = n;
}

/* Removes from both logs the events of tasks in which perf missed switches: the perf of some
 * kernels does not report all switches of some tasks (capture_perf.c). */
static inline void blind_leave_out(struct log *bpf, struct log *perf)
{
	bool *blind = calloc(TASK_KEYS, sizeof(*blind));
	int *unseen = calloc(TASK_KEYS, sizeof(*unseen));
	struct log *logs[2] = {bpf, perf};
	size_t n_blind = 0;

	assert_true(blind && unseen);
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i < logs[k]->n; i++) {
			const struct vs_event *e = &logs[k]->events[i];

			if (e->type == VS_EVENT_SCHED_SWITCH)
				unseen[task_key(e, e->pid)] += k ? -1 : 1;
		}
	}
	for (size_t key = 0; key < TASK_KEYS; key++) {
		blind[key] = unseen[key] != 0;
		n_blind += blind[key];
	}
	if (n_blind)
		print_message("perf of this kernel is blind in %zu tasks\n", n_blind);
	blind_drop(bpf, blind);
	blind_drop(perf, blind);
	free(unseen);
	free(blind);
}

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Removes the events outside [begin, end), in which both captures ran. */
static inline void log_cut(struct log *log, uint64_t begin, uint64_t end)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n; i++) {
		if (log->events[i].time >= begin && log->events[i].time < end)
			log->events[n++] = log->events[i];
	}
	log->n = n;
}

static inline int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Fails the test if the events differ in anything but the time. Returns the difference of their
 * times, in ns. */
static inline uint64_t record_compare(const struct vs_event *a, const struct vs_event *b)
{
	if (a->type != b->type || a->cpu != b->cpu || a->pid != b->pid || a->pid2 != b->pid2 ||
	    a->arg0 != b->arg0 || a->arg1 != b->arg1)
		fail_msg("type %d cpu %d pid %d/%d args %#lx %#lx by BPF is type %d cpu %d "
			 "pid %d/%d args %#lx %#lx by perf",
			 a->type, a->cpu, a->pid, a->pid2, a->arg0, a->arg1, b->type, b->cpu,
			 b->pid, b->pid2, b->arg0, b->arg1);
	return a->time > b->time ? a->time - b->time : b->time - a->time;
}

#endif
