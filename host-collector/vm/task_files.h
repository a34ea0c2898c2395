/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What /proc says of one task: its cgroup and, if it is a thread of a VMM, which VM it runs. All
 * files are read below one open directory, which stands for one task however its id is used again.
 *
 * The name of a VM comes from its VMM's command line, which whoever runs the process chooses. It
 * counts as a claim unless the process runs as root or as a user that libvirt runs VMs as.
 *
 * Reading a command line may block for as long as the process likes: not for an event loop.
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
	uint64_t tick_ns;      /* the unit of times in /proc/PID/stat */
	uint64_t suspended_ns; /* CLOCK_BOOTTIME less CLOCK_MONOTONIC */
	size_t n_users;        /* that libvirt runs VMs as */
	uint32_t users[TASK_FILES_USERS];
};

/* A task as an event named it. */
struct task_identity {
	int32_t tid, tgid;
	char comm[16];
	uint64_t seen_ns; /* CLOCK_MONOTONIC of an event in which it ran */
};

struct task_facts {
	int32_t tid, tgid;
	uint64_t age_ns; /* at the event: it began so long before, or up to a tick later */
	char cgroup[VS_CGROUP_MAX]; /* as path below the mount, the end of a long one; "": unknown
				     */
	char vm[VS_TEXT_MAX];       /* "": it is no VMM's */
	bool vcpu_known;
	uint32_t vcpu;
	bool claimed; /* the VM's name, by a process of this user */
	uint32_t uid;
};

/* proc: NULL is /proc; passwd: NULL is /etc/passwd. */
void task_facts_init(struct task_files *f, const char *proc, const char *passwd);
/* 0, -ESRCH (the task that was seen is gone, or another has its id now), -errno. */
int task_facts_read(const struct task_files *f, const struct task_identity *task,
		    struct task_facts *out);

#endif
