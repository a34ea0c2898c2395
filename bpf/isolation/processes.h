/* SPDX-License-Identifier: GPL-2.0-only */
/* Caches the mapped executable files of the 72 processes that the opener used last. */
#ifndef ISOLATION_PROCESSES_H
#define ISOLATION_PROCESSES_H

#include "bpf/isolation/modules.h"

struct process {
	pid_t pid;
	uint64_t start_time, used, read_ms;
	uint32_t list; /* number of the list of modules; each list has a new number */
	size_t n;
	struct module *modules;
};

struct processes;

struct processes *processes_new(void); /* NULL on ENOMEM */
/* Returns the process; reads its mappings if it is not in the cache. Returns NULL if the process is
 * gone or its mappings cannot be read. Valid until the next call. */
struct process *processes_get(struct processes *all, pid_t pid, uint64_t start_time);
/* Reads the mappings of `p` again if the last reading is at least one second old. Keeps the data of
 * files that are still mapped. */
void processes_look_again(struct processes *all, struct process *p);

#endif
