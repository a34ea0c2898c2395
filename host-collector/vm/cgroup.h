/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CPU quotas over a VM's vCPU threads: which cgroups (v1 and v2) hold them, up to the root, and
 * what the kernel counts of throttling in each. A thread may be in a cgroup of its own.
 *
 * A cgroup without a quota is read as well, because one may be set and used up between two looks;
 * it is reported only if its counter moved. Where there are many, those are read once a second.
 */
#ifndef VM_CGROUP_H
#define VM_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/message.h"

struct cgroups;

typedef void (*cgroup_reading)(void *context, const struct message_cpu_quota *reading);

/* proc: NULL is /proc; its self/mountinfo says where cgroups are mounted. NULL on ENOMEM. */
struct cgroups *cgroups_new(const char *proc);
void cgroups_free(struct cgroups *c);
/* Looks in which cgroups the VM's vCPU threads are now. Call it at first, and once a second. 0,
 * -E2BIG (not all of them are watched), -ENOMEM. */
int cgroups_follow(struct cgroups *c, const struct message_vm_info *info);
/* Reads every counter that is due, and hands out what changed since the last time; `tsc` is now.
 * Call it every 100 ms. */
void cgroups_read(struct cgroups *c, uint64_t (*tsc)(void), cgroup_reading reading, void *context);

#endif
