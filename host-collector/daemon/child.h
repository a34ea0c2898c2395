/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program that the daemon runs in a process of its own.
 *
 * uv_spawn() forks: the kernel copies the page tables of the whole daemon, tens of milliseconds
 * with hundreds of MiB, and the loop faults on each page that it writes afterwards. posix_spawn()
 * shares the memory until the program begins.
 */
#ifndef DAEMON_CHILD_H
#define DAEMON_CHILD_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

struct child {
	union {
		uv_handle_t any;
		uv_poll_t exit;      /* of the process */
		uv_idle_t unstarted; /* no process: it is only closed */
	} handle;
	pid_t pid; /* 0: it does not run */
	int pidfd;
	void (*ended)(void *context, int code, int signal);
	void (*closed)(void *context);
	void *context;
};

/* Starts the program with the descriptors `in` and `out` (-1: /dev/null) as its standard input and
 * output and with the caller's standard error; it gets no other descriptor. The caller keeps `in`
 * and `out`. *child is zeroed memory, which must stay until `closed` was called.
 *
 * ended: called when the process was reaped, with its exit code, or with the signal that ended it.
 * closed: called in the turn of the loop after that, or after the call if it fails.
 * Returns 0 or -errno. */
int child_start(struct child *child, uv_loop_t *loop, const char *program, char *const *args,
		int in, int out);
/* Sends SIGKILL if the process runs. The caller learns of its end as of that of any other child. */
void child_kill(struct child *child);

#endif
