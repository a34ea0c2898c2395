/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the CPU quotas of a VM's vCPU threads: finds the cgroups (v1 and v2) that contain the
 * threads, up to the root, and reads the kernel's throttling counters of each. Each thread may be
 * in a different cgroup.
 *
 * The counters of a cgroup without a quota are read once a second, because a quota may be set and
 * lifted between two calls; they are reported only if one changed. Each call reads whether such a
 * cgroup has a quota now, and whether a thread moved to another cgroup. In both cases it reads the
 * counters concerned at once.
 */
#ifndef VM_CGROUP_H
#define VM_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/message.h"

struct cgroups;

typedef void (*cgroup_reading)(void *context, const struct message_cpu_quota *reading);

/* Allocates the object. proc: NULL for /proc; its self/mountinfo shows where cgroups are mounted.
 * Returns NULL on ENOMEM. */
struct cgroups *cgroups_new(const char *proc);
void cgroups_free(struct cgroups *c);
/* Takes the VM's vCPU threads from `info` and finds their cgroups. Keeps a file of each thread
 * open. Call it first, and then once a second. Returns 0, -E2BIG: not all cgroups can be watched,
 * or -ENOMEM: the threads of the last call stay. */
int cgroups_follow(struct cgroups *c, const struct message_vm_info *info);
/* Reads all counters that are due. Calls `reading` for each cgroup that has a quota or whose
 * counters changed, with the changes since its last reading. tsc: returns the host TSC. Call it
 * every 100 ms. */
void cgroups_read(struct cgroups *c, uint64_t (*tsc)(void), cgroup_reading reading, void *context);

#endif
