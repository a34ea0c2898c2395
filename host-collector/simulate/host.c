// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/host.h"

#include <stdio.h>
#include <string.h>

enum {
	SLICE_NS = 3000000,
	STACK_THRESHOLD_NS = 20000000, /* shorter waits bring none: record's default */
	PRIO_FAIR = 120,
	PRIO_REALTIME = 49,
};

static void reschedule(void *object, uint64_t argument);

static vs_u32 prio(const struct host_thread *t)
{
	return t && t->urgency == HOST_REALTIME ? PRIO_REALTIME : PRIO_FAIR;
}

/* Every task named in an event is announced before its first one. */
static void announce(struct host *h, uint16_t cpu, struct host_thread *t)
{
	struct vs_event e = {.type = VS_EVENT_TASK_NAME};

	if (!t || t->announced)
		return;
	t->announced = true;
	e.pid = t->tid;
	e.pid2 = t->tgid;
	ev_set_task_comm(&e, t->comm);
	sim_capture_event(h->capture, cpu, e);
}

bool sim_host_event(struct host_thread *t, struct vs_event e)
{
	announce(t->host, t->cpu, t);
	return sim_capture_event(t->host->capture, t->cpu, e);
}

static void waits(struct host_thread *t, int by)
{
	if (t->followed)
		t->host->pcpus[t->cpu].followed_waiting += (unsigned)by;
}

static void enqueue(struct host_thread *t)
{
	struct host_thread **at = &t->host->pcpus[t->cpu].queue;

	t->state = HOST_READY;
	t->next = NULL;
	waits(t, 1);
	if (t->throttled)
		return;
	while (*at)
		at = &(*at)->next;
	*at = t;
}

static void dequeue(struct host_thread *t)
{
	struct host_thread **at = &t->host->pcpus[t->cpu].queue;

	while (*at && *at != t)
		at = &(*at)->next;
	if (*at)
		*at = t->next;
	waits(t, -1);
}

/* The most urgent that waits, of these the first. */
static struct host_thread *candidate(const struct pcpu *p)
{
	struct host_thread *best = p->queue;

	for (struct host_thread *t = p->queue; t; t = t->next) {
		if (t->urgency > best->urgency)
			best = t;
	}
	return best;
}

static void switch_to(struct pcpu *p, struct host_thread *next, uint32_t state)
{
	struct host_thread *prev = p->current;
	struct host *h = p->host;
	int64_t now = h->engine->now;
	struct vs_event e = {.type = VS_EVENT_SCHED_SWITCH,
			     .pid = prev ? prev->tid : 0,
			     .pid2 = next ? next->tid : 0};

	if (next)
		dequeue(next);
	if ((prev && prev->followed) || (next && next->followed) || p->followed_waiting) {
		announce(h, p->cpu, prev);
		announce(h, p->cpu, next);
		ev_set_sched_switch_state(&e, state);
		ev_set_sched_switch_out_prio(&e, (int32_t)prio(prev));
		ev_set_sched_switch_in_prio(&e, (int32_t)prio(next));
		sim_capture_event(h->capture, p->cpu, e);
	}
	p->current = next;
	p->current_since = now;
	p->switches++;
	p->slice_planned = false;
	if (prev) {
		prev->off_state = state;
		prev->off_time = now;
		if (state == VS_TASK_RUNNING)
			enqueue(prev);
		else
			prev->state = HOST_SLEEPING;
	}
	if (!next)
		return;
	next->state = HOST_RUNNING;
	if (next->is_vcpu && next->off_state && now - next->off_time >= STACK_THRESHOLD_NS)
		sim_stacks_waiter(h->stacks, next->tid, next->off_stack, now - next->off_time);
	next->off_state = 0;
	next->ops->runs(next);
}

static void slice_over(void *object, uint64_t switches)
{
	struct pcpu *p = object;
	struct host_thread *next = candidate(p);

	if (p->switches != switches || !p->current)
		return;
	p->slice_planned = false;
	if (!next || next->urgency < p->current->urgency)
		return;
	p->current->ops->leaves(p->current);
	switch_to(p, next, VS_TASK_RUNNING);
	reschedule(p, 0);
}

static void slice_plan(struct pcpu *p)
{
	if (p->slice_planned || !p->current || !p->queue || p->current->urgency == HOST_REALTIME)
		return;
	p->slice_planned = true;
	engine_at(p->host->engine,
		  p->current_since + SLICE_NS + engine_between(p->host->engine, 0, 1000000),
		  slice_over, p, p->switches);
}

/* Who waits may be more urgent than who runs. */
static void reschedule(void *object, uint64_t argument)
{
	struct pcpu *p = object;
	struct host_thread *next = candidate(p);

	(void)argument;
	if (next && (!p->current || p->current->throttled || next->urgency > p->current->urgency)) {
		if (p->current)
			p->current->ops->leaves(p->current);
		switch_to(p, next, VS_TASK_RUNNING);
	} else if (p->current && p->current->throttled) {
		p->current->ops->leaves(p->current);
		switch_to(p, NULL, VS_TASK_RUNNING);
	}
	slice_plan(p);
}

/* ---- ordinary threads ---- */

static void work_wake(void *object, uint64_t generation)
{
	struct host_thread *t = object;

	if (t->generation == generation)
		host_wake(t, NULL);
}

static void work_done(void *object, uint64_t generation)
{
	struct host_thread *t = object;
	struct engine *e = t->host->engine;

	if (t->generation != generation || t->state != HOST_RUNNING)
		return;
	t->left = 0;
	if (t->done)
		t->done(t->context);
	host_sleep(t, VS_TASK_INTERRUPTIBLE, NULL);
	if (t->sleep_ns[1])
		engine_at(e, e->now + engine_between(e, t->sleep_ns[0], t->sleep_ns[1]), work_wake,
			  t, t->generation);
}

static void work_leaves(struct host_thread *t)
{
	t->left -= t->host->engine->now - t->since;
	t->generation++;
}

static void work_runs(struct host_thread *t)
{
	struct engine *e = t->host->engine;

	if (t->left <= 0)
		t->left = pace_draw(t->host->pace, e, PACE_HOST_TASK, t->run_ns[0], t->run_ns[1]);
	t->since = e->now;
	engine_at(e, e->now + t->left, work_done, t, ++t->generation);
}

static const struct host_thread_ops work_ops = {work_leaves, work_runs};

/* ---- */

void host_init(struct host *h, struct engine *e, const struct sim_pace *pace, struct sim_capture *c,
	       struct sim_stacks *s, uint16_t n_cpus)
{
	memset(h, 0, sizeof(*h));
	h->engine = e;
	h->pace = pace;
	h->capture = c;
	h->stacks = s;
	h->n_cpus = n_cpus;
	for (uint16_t cpu = 0; cpu < n_cpus; cpu++)
		h->pcpus[cpu] = (struct pcpu){.host = h, .cpu = cpu};
}

struct host_thread *host_thread_new(struct host *h, int32_t tid, int32_t tgid, const char *comm,
				    uint16_t cpu)
{
	struct host_thread *t;

	if (h->n_threads == HOST_THREADS_MAX)
		return NULL;
	t = &h->threads[h->n_threads++];
	*t = (struct host_thread){
		.host = h, .tid = tid, .tgid = tgid, .cpu = cpu, .ops = &work_ops};
	snprintf(t->comm, sizeof(t->comm), "%s", comm);
	return t;
}

void host_thread_works(struct host_thread *t, int64_t run_low, int64_t run_high, int64_t sleep_low,
		       int64_t sleep_high)
{
	struct engine *e = t->host->engine;

	t->run_ns[0] = run_low;
	t->run_ns[1] = run_high;
	t->sleep_ns[0] = sleep_low;
	t->sleep_ns[1] = sleep_high;
	if (sleep_high)
		engine_at(e, e->now + engine_between(e, 0, sleep_high), work_wake, t,
			  t->generation);
}

static uint16_t idle_cpu(const struct host *h, uint16_t otherwise)
{
	for (uint16_t cpu = 0; cpu < h->n_cpus; cpu++) {
		if (!h->pcpus[cpu].current && !h->pcpus[cpu].queue)
			return cpu;
	}
	return otherwise;
}

void host_wake(struct host_thread *t, struct host_thread *waker)
{
	struct host *h = t->host;
	uint16_t on = waker ? waker->cpu : t->cpu, to = t->cpu;
	struct host_thread *by = waker ? waker : h->pcpus[on].current;
	struct pcpu *p;
	struct vs_event migration = {
		.type = VS_EVENT_SCHED_MIGRATE, .pid = t->tid, .pid2 = by ? by->tid : 0};
	struct vs_event wakeup = {
		.type = VS_EVENT_SCHED_WAKEUP, .pid = t->tid, .pid2 = by ? by->tid : 0};

	if (t->state != HOST_SLEEPING)
		return;
	if (t->is_vcpu && h->engine->now - t->off_time >= STACK_THRESHOLD_NS)
		sim_stacks_waker(h->stacks, by ? by->tid : 0, t->tid, t->waking_stack,
				 h->engine->now - t->off_time);
	if (!t->pinned && h->pcpus[to].current)
		to = idle_cpu(h, to);
	if (t->followed) {
		announce(h, on, t);
		announce(h, on, by);
		ev_set_sched_migrate_task_from(&migration, t->cpu);
		ev_set_sched_migrate_task_to(&migration, to);
		if (to != t->cpu)
			sim_capture_event(h->capture, on, migration);
		ev_set_sched_wakeup_cpu(&wakeup, to);
		ev_set_sched_wakeup_prio(&wakeup, (int32_t)prio(t));
		sim_capture_event(h->capture, on, wakeup);
	}
	t->cpu = to;
	p = &h->pcpus[to];
	enqueue(t);
	if (!p->current || t->urgency > p->current->urgency)
		engine_at(h->engine,
			  h->engine->now + pace_draw(h->pace, h->engine, PACE_HOST_WAKE, 600, 4000),
			  reschedule, p, 0);
	else
		slice_plan(p);
}

void host_sleep(struct host_thread *t, uint32_t state, const struct sim_stack *stack)
{
	struct pcpu *p = &t->host->pcpus[t->cpu];

	t->ops->leaves(t);
	t->off_stack = stack;
	switch_to(p, candidate(p), state);
	slice_plan(p);
}

void host_throttle(struct host_thread *t, bool throttled)
{
	struct pcpu *p = &t->host->pcpus[t->cpu];

	if (t->throttled == throttled)
		return;
	if (t->state == HOST_READY) {
		dequeue(t);
		t->throttled = throttled;
		enqueue(t);
	}
	t->throttled = throttled;
	reschedule(p, 0);
}

void host_signal(struct host_thread *target, struct host_thread *sender, uint32_t number)
{
	struct vs_event e = {.type = VS_EVENT_SIGNAL, .pid = target->tid, .pid2 = sender->tid};

	announce(target->host, sender->cpu, target);
	ev_set_signal_number(&e, number);
	ev_set_signal_process(&e, (uint64_t)target->tgid);
	sim_host_event(sender, e);
}
