/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Takes everything from the calling process that a decoder does not need: other descriptors, root,
 * capabilities, new descriptors and processes, memory beyond a limit, and all system calls but
 * those that read and write what it holds. Whatever it tries else kills it (SIGSYS), and it dies
 * with its parent.
 */
#ifndef DECODE_CONFINE_H
#define DECODE_CONFINE_H

#include <stdint.h>
#include <sys/types.h>

/* Descriptors 0..keep-1 stay; `sockets` more may be received through them, 0: none. memory_bytes:
 * above what the process has now. parent: with which it dies. 0, or -errno of the first step that
 * failed, which `step` names: the process must not go on then. */
int confine(int keep, int sockets, uint64_t memory_bytes, pid_t parent, const char **step);

#endif
