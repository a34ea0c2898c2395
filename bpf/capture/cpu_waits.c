/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/cpu_waits.h"

#include <stdbool.h>
#include <stdlib.h>

#include "proto/event_catalog.h"

struct cpu {
	int32_t running;
	uint32_t waiting; /* threads of all users */
	struct user_set users;
};

struct cpu_waits {
	size_t n_cpus, n_users;
	uint32_t *waiting_of; /* threads by CPU and user */
	struct cpu cpus[];
};

struct cpu_waits *cpu_waits_new(size_t n_cpus, size_t n_users)
{
	struct cpu_waits *w = calloc(1, sizeof(*w) + n_cpus * sizeof(w->cpus[0]));

	if (!w)
		return NULL;
	w->waiting_of = calloc(n_cpus * n_users, sizeof(*w->waiting_of));
	if (!w->waiting_of) {
		free(w);
		return NULL;
	}
	w->n_cpus = n_cpus;
	w->n_users = n_users;
	for (size_t i = 0; i < n_cpus; i++)
		w->cpus[i].running = CPU_WAITS_TASK_UNKNOWN;
	return w;
}

void cpu_waits_free(struct cpu_waits *w)
{
	if (w)
		free(w->waiting_of);
	free(w);
}

static bool cpu_valid(const struct cpu_waits *w, int64_t cpu)
{
	return cpu >= 0 && (uint64_t)cpu < w->n_cpus;
}

static uint32_t *waiting_of(struct cpu_waits *w, const struct cpu_waiter *t)
{
	return &w->waiting_of[(size_t)t->waiting_cpu * w->n_users + t->user];
}

/* Moves a thread to the waiters of `cpu`; -1: it waits no longer. */
static void wait_on(struct cpu_waits *w, struct cpu_waiter *t, int32_t cpu)
{
	if (t->waiting_cpu >= 0) {
		struct cpu *c = &w->cpus[t->waiting_cpu];

		c->waiting--;
		if (!--*waiting_of(w, t))
			user_set_remove(&c->users, t->user);
	}
	t->waiting_cpu = cpu_valid(w, cpu) ? cpu : -1;
	if (t->waiting_cpu >= 0) {
		struct cpu *c = &w->cpus[t->waiting_cpu];

		c->waiting++;
		++*waiting_of(w, t);
		user_set_add(&c->users, t->user);
	}
}

void cpu_waits_switch(struct cpu_waits *w, const struct vs_event *e, struct cpu_waiter *out,
		      struct cpu_waiter *in)
{
	if (cpu_valid(w, e->cpu))
		w->cpus[e->cpu].running = e->pid2;
	if (out) {
		out->cpu = e->cpu; /* its migration may have been lost */
		wait_on(w, out, ev_sched_switch_state(e) == VS_TASK_RUNNING ? (int32_t)e->cpu : -1);
	}
	if (in) {
		in->cpu = e->cpu;
		wait_on(w, in, -1);
	}
}

void cpu_waits_wakeup(struct cpu_waits *w, const struct vs_event *e, struct cpu_waiter *t)
{
	const bool runs = cpu_valid(w, t->cpu) && w->cpus[t->cpu].running == e->pid;

	if (!runs && t->waiting_cpu < 0)
		wait_on(w, t, (int32_t)ev_sched_wakeup_cpu(e));
}

void cpu_waits_migrate(struct cpu_waits *w, const struct vs_event *e, struct cpu_waiter *t)
{
	if (t->waiting_cpu >= 0)
		wait_on(w, t, (int32_t)ev_sched_migrate_task_to(e));
}

void cpu_waits_leave(struct cpu_waits *w, struct cpu_waiter *t)
{
	wait_on(w, t, -1);
}

void cpu_waits_lost(struct cpu_waits *w, size_t cpu)
{
	if (cpu < w->n_cpus)
		w->cpus[cpu].running = CPU_WAITS_TASK_UNKNOWN;
}

void cpu_waits_users(const struct cpu_waits *w, size_t cpu, struct user_set *out)
{
	if (cpu < w->n_cpus && w->cpus[cpu].waiting)
		user_set_join(out, &w->cpus[cpu].users);
}

uint32_t cpu_waits_count(const struct cpu_waits *w, size_t cpu)
{
	return cpu < w->n_cpus ? w->cpus[cpu].waiting : 0;
}

int32_t cpu_waits_running(const struct cpu_waits *w, size_t cpu)
{
	return cpu < w->n_cpus ? w->cpus[cpu].running : CPU_WAITS_TASK_UNKNOWN;
}
