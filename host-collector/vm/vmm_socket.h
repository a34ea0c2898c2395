/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sockets of a VMM that lives in a container: in a mount namespace, or below a root directory, that
 * is not ours. Whoever made the container chooses what its paths lead to, so a path is resolved
 * below the VMM's root whatever it says, through no magic link of /proc, only to a socket, and only
 * to one that the VMM itself made listen.
 */
#ifndef VM_VMM_SOCKET_H
#define VM_VMM_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

/* Does the process see other files than we do? */
bool vmm_root_differs(const char *proc, pid_t pid);
/*
 * Connects to the socket that `pid` has at `path`. A full backlog is waited for up to limit_ms;
 * with 0 it is -EAGAIN at once, and the descriptor does not block. A connected descriptor, or
 * -ENOENT, -ENOTSOCK, -ELOOP (a magic link), -EPERM (another process listens there), -ETIMEDOUT,
 * -ENOSYS (before Linux 5.6), -errno.
 */
int vmm_socket_connect(const char *proc, pid_t pid, const char *path, int limit_ms);

#endif
