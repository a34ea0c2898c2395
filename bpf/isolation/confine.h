/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Removes all rights from the calling process that a helper for other users' bytes does not need.
 * It closes other descriptors, drops root and capabilities, forbids new descriptors and processes,
 * limits memory, and allows only the system calls that read and write the descriptors it holds. Any
 * other call kills the process (SIGSYS). The process dies with its parent.
 */
#ifndef ISOLATION_CONFINE_H
#define ISOLATION_CONFINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct confinement {
	int keep;              /* descriptors 0..keep-1 stay open */
	uint64_t memory_bytes; /* limit of the memory that it may allocate from now on */
	pid_t parent;          /* the parent process, whose death ends this one */
	/* Numbers of descriptors that it may receive through the kept ones; 0: none. It cannot open
	 * any itself. sockets: connections. files: files, which it may also read with pread(). */
	int sockets, files;
};

/* Confines the process. Returns 0, or -errno of the first step that failed, with its name in *step;
 * then the process must exit. */
int confine(const struct confinement *c, const char **step);
/* Makes the process die with its parent, for a process that keeps its rights. Call it after a
 * change of user, which resets this setting. Returns 0 or -errno: -ESRCH (the parent is already
 * gone). */
int confine_follow_parent(pid_t parent);

#endif
