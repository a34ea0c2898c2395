/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/isolation/processes.h"
#include "clock/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	PROCESSES_MAX = 72,
	LOOK_AGAIN_MS = 1000, /* the least time between two readings of a process's mappings */
};

struct processes {
	uint64_t uses;
	uint32_t lists;
	struct process processes[PROCESSES_MAX];
	struct module scratch[NAMING_MODULES_MAX];
};

struct processes *processes_new(void)
{
	return calloc(1, sizeof(struct processes));
}

static void process_forget(struct process *p)
{
	free(p->modules);
	*p = (struct process){0};
}

/* Reads the mappings again and keeps what is known of their files. Returns 0 or -errno. */
static int process_look(struct processes *all, struct process *p)
{
	long n = modules_read(p->pid, all->scratch, NAMING_MODULES_MAX);
	struct module *modules;

	p->read_ms = clock_monotonic_ms();
	if (n < 0)
		return (int)n;
	if (modules_start_time(p->pid) != p->start_time)
		return -ESRCH;
	modules = malloc((size_t)(n + 1) * sizeof(*modules));
	if (!modules)
		return -ENOMEM;
	memcpy(modules, all->scratch, (size_t)n * sizeof(*modules));
	for (size_t i = 0; i < (size_t)n; i++) {
		const long was = modules_find(p->modules, p->n, modules[i].seen.code_begin);

		if (was < 0 || p->modules[was].device != modules[i].device ||
		    p->modules[was].inode != modules[i].inode)
			continue;
		modules[i].id = p->modules[was].id;
		modules[i].owner = p->modules[was].owner;
	}
	free(p->modules);
	p->modules = modules;
	p->n = (size_t)n;
	p->list = ++all->lists;
	return 0;
}

struct process *processes_get(struct processes *all, pid_t pid, uint64_t start_time)
{
	struct process *oldest = &all->processes[0];

	for (size_t i = 0; i < PROCESSES_MAX; i++) {
		struct process *p = &all->processes[i];

		if (p->pid == pid && p->start_time == start_time) {
			p->used = ++all->uses;
			return p;
		}
		if (p->pid == pid)
			process_forget(p); /* ended; its number belongs to another process now */
		if (p->used < oldest->used)
			oldest = p;
	}
	process_forget(oldest);
	oldest->pid = pid;
	oldest->start_time = start_time;
	oldest->used = ++all->uses;
	if (!process_look(all, oldest))
		return oldest;
	process_forget(oldest);
	return NULL;
}

void processes_look_again(struct processes *all, struct process *p)
{
	if (clock_monotonic_ms() - p->read_ms >= LOOK_AGAIN_MS)
		process_look(all, p);
}
