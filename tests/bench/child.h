/* SPDX-License-Identifier: GPL-2.0-only */
/* Creates child processes that the kernel kills when their benchmark dies, so that a killed
 * benchmark leaves nothing running. */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

/* Calls fork(). The child gets `signal_number` when its parent dies, also after an execve().
 * Returns as fork() does. */
static inline pid_t child_fork_with(int signal_number)
{
	const pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, signal_number);
	if (getppid() != parent) /* the parent died before prctl() */
		_exit(1);
	return 0;
}

static inline pid_t child_fork(void)
{
	return child_fork_with(SIGKILL);
}

#endif
