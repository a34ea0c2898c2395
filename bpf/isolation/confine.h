/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Takes everything from the calling process that a helper does not need which reads foreign bytes:
 * other descriptors, root, capabilities, new descriptors and processes, memory beyond a limit, and
 * all system calls but those that read and write what it holds. Any other call kills it (SIGSYS),
 * and it dies with its parent.
 */
#ifndef ISOLATION_CONFINE_H
#define ISOLATION_CONFINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct confinement {
	int keep;              /* descriptors 0..keep-1 stay */
	uint64_t memory_bytes; /* above what the process has now */
	pid_t parent;          /* with which it dies */
	/* It may receive up to this many descriptors through those; 0: none. It opens none itself.
	 * sockets: of connections; files: it may read them with pread(), too. */
	int sockets, files;
};

/* 0, or -errno of the first step that failed, which `step` names: the process must not go on
 * then. */
int confine(const struct confinement *c, const char **step);
/* Only the death with the parent; for a process that keeps its rights. To be called after the user
 * has changed, for that undoes it. 0, -errno, -ESRCH: the parent is gone already. */
int confine_follow_parent(pid_t parent);

#endif
