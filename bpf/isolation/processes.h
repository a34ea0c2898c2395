/* SPDX-License-Identifier: GPL-2.0-only */
/* What an opener remembers of the processes whose stacks are named: the files of code that each has
 * mapped, of the 72 processes used last. */
#ifndef ISOLATION_PROCESSES_H
#define ISOLATION_PROCESSES_H

#include "bpf/isolation/modules.h"

struct process {
	pid_t pid;
	uint64_t start_time, used, read_ms;
	uint32_t list; /* number of the list of modules; another list has another */
	size_t n;
	struct module *modules;
};

struct processes;

struct processes *processes_new(void); /* NULL on ENOMEM */
/* Reads its mappings unless it is known. NULL: it is gone. Valid until the next call. */
struct process *processes_get(struct processes *all, pid_t pid, uint64_t start_time);
/* Its mappings as they are now, once a second at most; what is known of their files stays. */
void processes_look_again(struct processes *all, struct process *p);

#endif
