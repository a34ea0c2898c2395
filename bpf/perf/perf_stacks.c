/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/symbols/kallsyms.h"
#include "bpf/perf/perf_stack_ring.h"

enum {
	CPU_RING_BYTES = 2 << 20,
	FILTER_BYTES = 4000, /* the kernel accepts a page */
	FOUND_MAX = 256,     /* stacks that wait until they are passed on */
	/* perf stamps the two records of one hit separately; their times differ by less than this.
	 */
	APART_NS = 1000000,
};

/* A stack and everything that it points to. */
struct kept_stack {
	uint64_t time; /* 0: none */
	struct perf_stack stack;
	uint8_t user[16384];
};

struct watched {
	pid_t tid;
	struct perf_stack_ring *ring;
	struct kept_stack *kept;
};

struct found {
	struct capture_stack out; /* pointers into `stack` */
	struct kept_stack stack;
};

struct perf_stacks {
	struct capture_perf *c;
	struct perf_tracepoint *switched, *waking; /* NULL: this kernel has none */
	struct perf_stack_ring **cpus;             /* by CPU */
	struct watched *watched;
	size_t n_watched;
	struct found *found[FOUND_MAX];
	size_t n_found;
	uint64_t dropped;
	struct kallsyms_range plumbing[KALLSYMS_PLUMBING_MAX];
	size_t n_plumbing;
};

static struct perf_tracepoint *tracepoint_of_type(struct capture_perf *c, vs_u16 type)
{
	for (size_t i = 0; i < c->n_sources; i++) {
		if (c->tracepoints[i].type == type)
			return &c->tracepoints[i];
	}
	return NULL;
}

struct perf_stacks *perf_stacks_new(struct capture_perf *c)
{
	struct perf_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->c = c;
	s->switched = tracepoint_of_type(c, VS_EVENT_SCHED_SWITCH);
	s->waking = tracepoint_of_type(c, PERF_WAKING);
	s->n_plumbing = kallsyms_plumbing(s->plumbing);
	s->cpus = calloc(c->n_cpus, sizeof(*s->cpus));
	if (s->cpus)
		return s;
	free(s);
	return NULL;
}

static void watched_fini(struct watched *w)
{
	perf_stack_ring_close(w->ring);
	free(w->kept);
}

void perf_stacks_free(struct perf_stacks *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_watched; i++)
		watched_fini(&s->watched[i]);
	for (size_t cpu = 0; cpu < s->c->n_cpus; cpu++)
		perf_stack_ring_close(s->cpus[cpu]);
	for (size_t i = 0; i < s->n_found; i++)
		free(s->found[i]);
	free(s->watched);
	free(s->cpus);
	free(s);
}

static void stack_keep(struct kept_stack *to, uint64_t time, const struct perf_stack *stack)
{
	to->time = time;
	to->stack = *stack;
	if (to->stack.user_bytes > sizeof(to->user))
		to->stack.user_bytes = sizeof(to->user);
	if (to->stack.user_bytes)
		memcpy(to->user, stack->user, to->stack.user_bytes);
	to->stack.user = to->user;
}

static struct watched *watched_find(struct perf_stacks *s, pid_t tid)
{
	for (size_t i = 0; i < s->n_watched; i++) {
		if (s->watched[i].tid == tid)
			return &s->watched[i];
	}
	return NULL;
}

/* ---- stacks of wakers ---- */

static bool filter_write(const struct perf_stacks *s, char filter[FILTER_BYTES])
{
	size_t used = 0;

	for (size_t i = 0; i < s->n_watched && used < FILTER_BYTES; i++)
		used += (size_t)snprintf(filter + used, FILTER_BYTES - used, "%spid==%d",
					 i ? "||" : "", s->watched[i].tid);
	return used < FILTER_BYTES;
}

static void cpu_watch(struct perf_stacks *s, size_t cpu, const char *filter)
{
	if (!s->cpus[cpu])
		s->cpus[cpu] = perf_stack_ring_open_cpu((int)cpu, CPU_RING_BYTES);
	if (s->cpus[cpu])
		perf_stack_ring_watch(s->cpus[cpu], s->waking->id, filter);
}

/* Watches the wakers of the threads. Wakers of threads that do not fit into the filter stay
 * unknown. */
static void wakers_watch(struct perf_stacks *s)
{
	char filter[FILTER_BYTES];

	if (!s->waking || !s->n_watched || !filter_write(s, filter))
		return;
	for (size_t cpu = 0; cpu < s->c->n_cpus; cpu++) {
		if (s->c->cpus[cpu].ring)
			cpu_watch(s, cpu, filter);
	}
}

void perf_stacks_cpu_open(struct perf_stacks *s, size_t cpu)
{
	char filter[FILTER_BYTES];

	if (s->waking && s->n_watched && filter_write(s, filter))
		cpu_watch(s, cpu, filter);
}

void perf_stacks_cpu_close(struct perf_stacks *s, size_t cpu)
{
	perf_stack_ring_close(s->cpus[cpu]);
	s->cpus[cpu] = NULL;
}

/* ---- stacks of sleepers ---- */

int perf_stacks_watch(struct perf_stacks *s, pid_t tid)
{
	/* A thread that stays runnable does not sleep. */
	static const char sleeps[] = "prev_state&127";
	struct watched *more, w = {.tid = tid};
	int error = 0;

	if (watched_find(s, tid))
		return 0;
	more = realloc(s->watched, (s->n_watched + 1) * sizeof(*more));
	if (more)
		s->watched = more;
	w.kept = calloc(1, sizeof(*w.kept));
	if (!more || !w.kept) {
		free(w.kept);
		return -ENOMEM;
	}
	w.ring = perf_stack_ring_open_thread(tid);
	error = w.ring ? perf_stack_ring_watch(w.ring, s->switched->id, sleeps) : -errno;
	if (error) {
		watched_fini(&w);
		return error;
	}
	s->watched[s->n_watched++] = w;
	wakers_watch(s);
	return 0;
}

/* Keeps the stack with which a thread left its CPU, after it was last switched in and not later
 * than `until`. */
static bool sleeper_keep(struct watched *w, const struct task *task, uint64_t until)
{
	struct perf_record record;
	struct perf_stack stack;

	if (w->kept->time && w->kept->time >= task->on_time && w->kept->time <= until)
		return true;
	if (!perf_stack_ring_newest(w->ring, task->on_time, until, &record, &stack))
		return false;
	stack_keep(w->kept, record.time, &stack);
	return true;
}

/* ---- stacks that were found ---- */

/* Returns NULL if there is no room. */
static struct found *found_add(struct perf_stacks *s, const struct kept_stack *stack)
{
	struct found *found = s->n_found < FOUND_MAX ? malloc(sizeof(*found)) : NULL;
	size_t skip;

	if (!found) {
		s->dropped++;
		return NULL;
	}
	stack_keep(&found->stack, stack->time, &stack->stack);
	skip = kallsyms_plumbing_frames(s->plumbing, s->n_plumbing, found->stack.stack.kernel,
					found->stack.stack.n_kernel);
	found->out = (struct capture_stack){
		.n_kernel = found->stack.stack.n_kernel - skip,
		.kernel = found->stack.stack.kernel + skip,
		.has_user = found->stack.stack.has_user,
		.user.copied_bytes = found->stack.stack.user_bytes,
		.user.copied = found->stack.user,
	};
	memcpy(found->out.user.regs, found->stack.stack.regs, sizeof(found->out.user.regs));
	s->found[s->n_found++] = found;
	return found;
}

void perf_stacks_slept(struct perf_stacks *s, const struct vs_event *event, const struct task *task,
		       enum vs_stack_role role, bool sampled)
{
	struct watched *w = watched_find(s, task->tid);
	struct found *found;

	if (!w || !sleeper_keep(w, task, event->time)) {
		/* The stack of another short wait is as good. */
		s->dropped += role == VS_STACK_WAITER;
		return;
	}
	found = found_add(s, w->kept);
	if (!found)
		return;
	found->out.time = task->off_time;
	found->out.wait_ns = event->time - task->off_time;
	found->out.tid = found->out.explains = task->tid;
	found->out.tgid = task->tgid;
	found->out.cpu = (uint16_t)task->wait.cpu;
	found->out.role = role;
	found->out.sampled = sampled;
	memcpy(found->out.comm, task->comm, sizeof(found->out.comm));
}

/* Finds the record of the same hit. Removes records of older hits, which are not needed any more.
 */
static bool waker_find(struct perf_stacks *s, const struct vs_event *event,
		       struct perf_record *record, struct perf_stack *stack)
{
	struct perf_stack_ring *ring = s->cpus[event->cpu];
	struct vs_event seen;

	while (ring && perf_stack_ring_peek(ring, record, stack)) {
		if (record->time > event->time + APART_NS)
			return false;
		if (record->time + APART_NS >= event->time &&
		    perf_tracepoint_decode(s->waking, record, &seen) && seen.pid == event->pid)
			return true;
		if (record->time > event->time)
			return false;
		perf_stack_ring_pop(ring);
	}
	return false;
}

void perf_stacks_woke(struct perf_stacks *s, const struct vs_event *event, const struct task *woken,
		      const struct task *waker)
{
	struct kept_stack *kept;
	struct perf_record record;
	struct perf_stack stack;
	struct found *found;

	if (!waker_find(s, event, &record, &stack)) {
		s->dropped++;
		return;
	}
	kept = malloc(sizeof(*kept));
	if (kept)
		stack_keep(kept, record.time, &stack);
	found = kept ? found_add(s, kept) : NULL;
	free(kept);
	if (!found)
		return;
	found->out.time = event->time;
	found->out.wait_ns = event->time - woken->off_time;
	found->out.tid = event->pid2;
	found->out.tgid = waker ? waker->tgid : 0;
	found->out.explains = event->pid;
	found->out.cpu = event->cpu;
	found->out.role = VS_STACK_WAKER;
	if (waker)
		memcpy(found->out.comm, waker->comm, sizeof(found->out.comm));
	else
		snprintf(found->out.comm, sizeof(found->out.comm), "swapper/%u", event->cpu);
}

/* ---- between replays ---- */

static void cpu_tidy(struct perf_stacks *s, size_t cpu, uint64_t cutoff)
{
	struct perf_record record;
	struct perf_stack stack;

	while (s->cpus[cpu] && perf_stack_ring_peek(s->cpus[cpu], &record, &stack) &&
	       record.time + APART_NS < cutoff)
		perf_stack_ring_pop(s->cpus[cpu]);
}

void perf_stacks_tidy(struct perf_stacks *s, const struct perf_follow *f, uint64_t cutoff)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_watched; i++) {
		struct watched *w = &s->watched[i];
		const struct task *task = perf_follow_find(f, w->tid);

		if (task && task->is_vcpu && task->off_state)
			sleeper_keep(w, task, UINT64_MAX);
		if (perf_follow_will(f, w->tid))
			s->watched[n++] = *w;
		else
			watched_fini(w);
	}
	s->n_watched = n;
	for (size_t cpu = 0; cpu < s->c->n_cpus; cpu++)
		cpu_tidy(s, cpu, cutoff);
}

void perf_stacks_deliver(struct perf_stacks *s, const struct capture_sink *sink)
{
	for (size_t i = 0; i < s->n_found; i++) {
		if (sink->stack)
			sink->stack(sink->context, &s->found[i]->out);
		free(s->found[i]);
	}
	s->n_found = 0;
}

uint64_t perf_stacks_dropped(const struct perf_stacks *s)
{
	return s->dropped;
}
