/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/thread_owners.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/fleet/vm_facts.h"
#include "host-collector/util/lru.h"

enum { KEEP_MS = 60000, PATH_BYTES = 256 };

struct owner {
	pid_t pid;
	int dir; /* /proc/PID: of this very process, whichever has its number later; -1: none */
	uint64_t read_ms;
	bool uuid_known;
	char uuid[IDENTITY_UUID_BYTES];
};

struct thread_owners {
	char proc[PATH_BYTES];
	struct lru owner_index, thread_index;
	struct owner owners[THREAD_OWNERS_PROCESSES];
	pid_t processes[THREAD_OWNERS_THREADS]; /* by the slot of the thread */
};

static void owner_close(struct owner *w)
{
	if (w->dir >= 0)
		close(w->dir);
	*w = (struct owner){.dir = -1};
}

struct thread_owners *thread_owners_new(const char *proc)
{
	struct thread_owners *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	snprintf(o->proc, sizeof(o->proc), "%s", proc);
	for (size_t i = 0; i < THREAD_OWNERS_PROCESSES; i++)
		o->owners[i].dir = -1;
	if (lru_init(&o->owner_index, THREAD_OWNERS_PROCESSES) ||
	    lru_init(&o->thread_index, THREAD_OWNERS_THREADS)) {
		thread_owners_free(o);
		return NULL;
	}
	return o;
}

void thread_owners_free(struct thread_owners *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < THREAD_OWNERS_PROCESSES; i++)
		owner_close(&o->owners[i]);
	lru_fini(&o->owner_index);
	lru_fini(&o->thread_index);
	free(o);
}

/* Returns whether the process that was read is there and has this thread. */
static bool owner_has(const struct owner *w, pid_t tid)
{
	char task[32];

	snprintf(task, sizeof(task), "task/%d", tid);
	return w->dir >= 0 && !faccessat(w->dir, task, F_OK, 0);
}

static struct owner *owner_find(struct thread_owners *o, pid_t process)
{
	const uint32_t slot = lru_find(&o->owner_index, (uint64_t)process);

	return slot == LRU_NONE ? NULL : &o->owners[slot];
}

/* The process that has this thread, if it was read within KEEP_MS; else 0. */
static pid_t kept_process(struct thread_owners *o, pid_t tid, uint64_t now_ms)
{
	const uint32_t slot = lru_find(&o->thread_index, (uint64_t)tid);
	const struct owner *w = slot == LRU_NONE ? NULL : owner_find(o, o->processes[slot]);
	bool fresh;

	if (!w || now_ms - w->read_ms >= KEEP_MS || !owner_has(w, tid))
		return 0;
	lru_put(&o->thread_index, (uint64_t)tid, &fresh);
	lru_put(&o->owner_index, (uint64_t)w->pid, &fresh);
	return w->pid;
}

static void owner_open(struct thread_owners *o, pid_t process, uint64_t now_ms)
{
	char path[PATH_BYTES + 16];
	bool fresh;
	struct owner *w = &o->owners[lru_put(&o->owner_index, (uint64_t)process, &fresh)];

	owner_close(w);
	snprintf(path, sizeof(path), "%s/%d", o->proc, process);
	w->pid = process;
	w->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	w->read_ms = now_ms;
}

pid_t thread_owners_process(struct thread_owners *o, pid_t tid, uint64_t now_ms)
{
	pid_t process = tid > 0 ? kept_process(o, tid, now_ms) : 0;
	const struct owner *w;
	bool fresh;

	if (process)
		return process;
	process = thread_process(o->proc, tid);
	if (!process)
		return 0;
	w = owner_find(o, process);
	if (!w || now_ms - w->read_ms >= KEEP_MS || !owner_has(w, tid))
		owner_open(o, process, now_ms);
	o->processes[lru_put(&o->thread_index, (uint64_t)tid, &fresh)] = process;
	return process;
}

void thread_owners_uuid(struct thread_owners *o, pid_t process, char out[IDENTITY_UUID_BYTES])
{
	struct owner *w = owner_find(o, process);
	struct vm_facts facts = {0};

	if (w && w->uuid_known) {
		memcpy(out, w->uuid, IDENTITY_UUID_BYTES);
		return;
	}
	vm_facts_process(o->proc, process, &facts);
	memcpy(out, facts.uuid, IDENTITY_UUID_BYTES);
	if (w && w->dir >= 0 && !faccessat(w->dir, "cmdline", F_OK, 0)) { /* it was this one's */
		memcpy(w->uuid, facts.uuid, IDENTITY_UUID_BYTES);
		w->uuid_known = true;
	}
}
