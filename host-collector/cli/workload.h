/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the command of `record -- COMMAND`. workload_prepare() creates its process, which waits,
 * because the capture needs the process id. workload_start() lets the process run the command, so
 * that the capture has the command's first events.
 *
 *	workload_prepare(&w, argv, ...);
 *	...                               // open the capture of w.pid
 *	workload_start(&w, ...);
 *	while (!workload_ended(&w)) ...
 *	workload_end(&w);
 */
#ifndef CLI_WORKLOAD_H
#define CLI_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct workload {
	pid_t pid; /* 0: there is no command */
	const char *name;
	int go_fd, error_fd; /* -1: closed */
	bool started, ended;
	bool stopped; /* workload_end() sent the command a signal */
	int status;   /* of waitpid(), if it has ended */
};

/* Creates the process, with the limits and signals that this process has now. `argv` is borrowed,
 * ends with NULL, and is searched in PATH. Returns 0, or -errno with one line in `why`: -ENOENT or
 * -EACCES if there is no such program. */
int workload_prepare(struct workload *w, char *const *argv, char *why, size_t why_bytes);
/* Lets the process run the program. Returns 0, or -errno with one line in `why` if it cannot. */
int workload_start(struct workload *w, char *why, size_t why_bytes);
/* Returns true if a command was started and has ended. */
bool workload_ended(struct workload *w);
/* Ends the command if it runs: with SIGTERM, and with SIGKILL after 2 s. A command that was not
 * started never runs. Does nothing without a command. */
void workload_end(struct workload *w);
/* Returns whether the command was started and ended by itself with an error or by a signal. */
bool workload_failed(const struct workload *w);
/* Writes how the command ended, such as "make: exit status 2". */
void workload_text(const struct workload *w, char *out, size_t out_bytes);

#endif
