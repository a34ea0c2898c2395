/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the tasks that belong to no VM, but whose hits of chosen events are recorded: threads, a
 * process with all processes that it starts, cgroups. */
#ifndef RECORD_WATCHED_TASKS_H
#define RECORD_WATCHED_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "bpf/capture/capture_event.h"

struct watched_tasks;

struct watched_tasks_options {
	const pid_t *threads;
	size_t n_threads;
	const char *const *cgroups; /* paths of directories of cgroup v2 */
	size_t n_cgroups;
	pid_t process;    /* 0: none */
	const char *proc; /* NULL: /proc */
};

/* Finds the tasks. Borrows the strings of the options until watched_tasks_close(). Returns 0, or
 * -errno with one line in `why`: -ESRCH (no such thread), -EXDEV (the caller is in a PID namespace
 * of its own), -EBADF (no cgroup v2), -E2BIG, or the error of the directory. */
int watched_tasks_open(const struct watched_tasks_options *options, struct watched_tasks **out,
		       char *why, size_t why_bytes);
void watched_tasks_close(struct watched_tasks *w); /* NULL is allowed */
/* Returns what a capture must watch to record these tasks; *n is at least 1. Borrowed. */
const struct capture_watch *watched_tasks_list(const struct watched_tasks *w, size_t *n);
/* Returns whether only threads are watched and all of them have ended. */
bool watched_tasks_ended(const struct watched_tasks *w);

#endif
