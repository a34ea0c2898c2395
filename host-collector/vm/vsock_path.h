/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a VMM carries its guest's vsock, if it does so over Unix sockets (Firecracker, Cloud
 * Hypervisor). The path is a claim of the VMM, like its name (identity.h). */
#ifndef VM_VSOCK_PATH_H
#define VM_VSOCK_PATH_H

#include <stddef.h>
#include <sys/types.h>

/* Stores the path of the vsock device's socket: the only one on which the process listens and that
 * its command line does not name as another. Returns 0, or -errno: -ENOENT (none), -ENOTUNIQ
 * (several). Reads the process's descriptors and the sockets of its network namespace, which takes
 * about a millisecond. */
int vsock_path_find(const char *proc, pid_t pid, char *out, size_t out_bytes);

#endif
