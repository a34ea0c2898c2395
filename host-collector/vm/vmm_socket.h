/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connects to sockets of a VMM in a container, that is, with another mount namespace or root
 * directory than the caller. The creator of the container controls where its paths lead. So a path
 * is resolved below the VMM's root, through no magic link of /proc, only to a socket, and only to a
 * socket that the VMM itself made listen.
 */
#ifndef VM_VMM_SOCKET_H
#define VM_VMM_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns whether the process has another mount namespace or root directory than the caller. */
bool vmm_root_differs(const char *proc, pid_t pid);
/*
 * Connects to the socket that `pid` has at `path`. limit_ms: time to wait if the backlog is full;
 * 0: return -EAGAIN at once, and make the descriptor non-blocking. Returns a connected descriptor,
 * which the caller closes, or -errno: -ENOENT, -ENOTSOCK, -ELOOP (a magic link), -EPERM (another
 * process listens), -ETIMEDOUT, -ENOSYS (before Linux 5.6).
 */
int vmm_socket_connect(const char *proc, pid_t pid, const char *path, int limit_ms);

/* Opens the file or, with O_DIRECTORY in `flags`, the folder that `pid` has at `path`, as a
 * descriptor that only stands for it (O_PATH); the caller closes it. Returns -errno as above. */
int vmm_path_open(const char *proc, pid_t pid, const char *path, uint64_t flags);
/* Returns 0 if the peer of the connected socket is `pid`, else -EPERM or -errno. */
int vmm_socket_peer_check(int fd, pid_t pid);

#endif
