/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the processes that threads of the host belong to, and the UUIDs of the VMs that these
 * processes run. A burst of incidents names the same threads again and again, and each process
 * costs reading nine files of /proc. So the results are kept for a minute. A result is used only
 * while the same process exists and still has the thread; a new process with the same number is
 * read again.
 */
#ifndef FLEET_THREAD_OWNERS_H
#define FLEET_THREAD_OWNERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-collector/vm/identity.h"

/* Maximum numbers of kept processes (each with an open directory) and threads. */
enum { THREAD_OWNERS_PROCESSES = 128, THREAD_OWNERS_THREADS = 1024 };

struct thread_owners;

/* proc: "/proc"; a folder for tests; copied. Returns NULL if there is no memory. */
struct thread_owners *thread_owners_new(const char *proc);
void thread_owners_free(struct thread_owners *o);
/* Returns the process that a thread belongs to, or 0. now_ms: CLOCK_MONOTONIC. */
pid_t thread_owners_process(struct thread_owners *o, pid_t tid, uint64_t now_ms);
/* Writes the UUID of the VM that a process runs; "" if it has none. `process` is what
 * thread_owners_process() has just returned. */
void thread_owners_uuid(struct thread_owners *o, pid_t process, char out[IDENTITY_UUID_BYTES]);

#endif
