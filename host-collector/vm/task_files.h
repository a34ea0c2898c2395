/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads facts about one task from /proc: its cgroup and, for a thread of a VMM, the VM. It reads
 * all files below one open directory, which belongs to one task even if the id is used again.
 *
 * The name of a VM comes from the VMM's command line, which the owner of the process chooses. It is
 * a claim unless the process runs as root or as a user that libvirt runs VMs as.
 *
 * Reading a command line may block for as long as its process wants. Do not call this on an event
 * loop.
 */
#ifndef VM_TASK_FILES_H
#define VM_TASK_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

enum { TASK_FILES_USERS = 4 };

struct task_files {
	char proc[256];
	uint64_t tick_ns;      /* length of a clock tick, the unit of /proc/PID/stat, in ns */
	uint64_t suspended_ns; /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC, in ns */
	size_t n_users;        /* number of `users`, the users that libvirt runs VMs as */
	uint32_t users[TASK_FILES_USERS];
};

/* A task as an event identified it. */
struct task_identity {
	int32_t tid, tgid;
	char comm[16];
	uint64_t seen_ns; /* CLOCK_MONOTONIC ns of an event in which it ran */
};

struct task_facts {
	int32_t tid, tgid;
	uint64_t age_ns; /* age at the event; the true age may be up to one tick less */
	/* Path below the mount point, or its end if it is long; "": unknown. */
	char cgroup[VS_CGROUP_MAX];
	char vm[VS_TEXT_MAX]; /* name of the VM; "": the task is not a VMM's */
	bool vcpu_known;
	uint32_t vcpu;
	bool claimed; /* the VM's name is a claim of user `uid` */
	uint32_t uid;
};

/* Reads the users that libvirt runs VMs as. proc: NULL for /proc. passwd: NULL for /etc/passwd. */
void task_facts_init(struct task_files *f, const char *proc, const char *passwd);
/* Reads the facts. Returns 0 or -errno; -ESRCH: the task has ended, or another task has its id
 * now. */
int task_facts_read(const struct task_files *f, const struct task_identity *task,
		    struct task_facts *out);

/* Reads only how old the task was. Returns as above. */
int task_age_read(const struct task_files *f, const struct task_identity *task, uint64_t *age_ns);

#endif
