/* SPDX-License-Identifier: GPL-2.0-only */
/* The stacks of a wait come after it: to which wait they belong, and what they prove of it. */
#include "host-collector/model/vcpu_internal.h"

/* Does a wait of `length` fit what the capture says it measured, up to its own rounding? */
static bool length_fits(int64_t length, int64_t wait_ns)
{
	int64_t slack = 1000000 + wait_ns / 16;

	return wait_ns == 0 || (length >= wait_ns - slack && length <= wait_ns + slack);
}

/* Adds a stack to the held spans of one episode, which end before `last`. */
static void episode_explain(struct vcpu *v, uint32_t last, uint32_t stack, enum vs_stack_role role,
			    const struct vcpu_sink *sink)
{
	uint32_t episode = last ? vcpu_held_at(v, last - 1)->episode : 0;

	for (; last > 0 && vcpu_held_at(v, last - 1)->episode == episode; last--) {
		struct vcpu_held *h = vcpu_held_at(v, last - 1);

		if (h->settled || h->assumed)
			break;
		/* The first that fits is the wait's own; a later one that fits too is stale. */
		if (role == VS_STACK_WAKER) {
			if (!h->span.waker_stack)
				h->span.waker_stack = stack;
		} else if (!h->span.waiter_stack) {
			h->span.waiter_stack = stack;
			vcpu_span_explain(&h->span, h->span.state,
					  sink->wait_class(sink->context, v, stack));
		}
		h->settled = h->span.waiter_stack && h->span.waker_stack &&
			     !vcpu_quota_awaited(v, &h->span);
	}
}

/* The end of the newest held episode that is as long as the wait: a count of entries, 0 if none. */
static uint32_t episode_find(const struct vcpu *v, int64_t wait_ns)
{
	uint32_t last = v->held_count;

	while (last > 0) {
		uint32_t first = last - 1;
		const struct vcpu_held *end = vcpu_held_at(v, last - 1);
		int64_t ns;

		while (first > 0 && vcpu_held_at(v, first - 1)->episode == end->episode)
			first--;
		ns = end->span.end.ns - vcpu_held_at(v, first)->span.begin.ns;
		if (!end->settled && !end->assumed && length_fits(ns, wait_ns))
			return last;
		last = first;
	}
	return 0;
}

/* The capture measured one wait, from when this one began until now: until the thread ran again, or
 * until it was woken. Nothing moved it meanwhile. */
static void stack_proves(struct vcpu *v, struct host_ns t, int32_t pid, enum vs_stack_role role,
			 int64_t wait_ns)
{
	int64_t differ = t.ns - v->episode_begin.ns - wait_ns, slack = 100000 + wait_ns / 500;

	if (wait_ns == 0 || !v->episode_seen || differ > 100000 || -differ > slack)
		return;
	if (role == VS_STACK_WAITER) {
		v->unbroken.ns = v->episode_begin.ns + wait_ns + slack;
		return;
	}
	if (v->state == THREAD_READY)
		return;
	v->waking_known = true;
	v->waking_pid = pid;
	v->waking = t;
	vcpu_queue_begin(v, t);
	if (!v->doubted)
		return;
	if (v->doubt_over)
		v->doubted = false;
	v->doubt_from = t;
	v->doubt_lost = 0;
	v->n_doubts = 0;
}

/*
 * Where a thread slept, and for how long, of one whose switch-out is missing: its stack shows a
 * wait that began inside the gap. A stack that decides nothing may be that of a preempted thread.
 */
static void stack_reveals(struct vcpu *v, struct host_ns t, uint32_t stack, int64_t wait_ns,
			  const struct vcpu_sink *sink)
{
	struct host_ns start = {t.ns - wait_ns};

	if (wait_ns <= 0 ||
	    (v->state != THREAD_UNSURE && !(v->state == THREAD_RUNNING && v->doubted)) ||
	    !vcpu_wait_decides(sink->wait_class(sink->context, v, stack)))
		return;
	/* A sleep that was over before the gap: its stack counts the wait for a CPU as well. */
	if (v->state == THREAD_UNSURE && v->was_ready && start.ns < v->open.begin.ns)
		return;
	if (v->doubted) {
		if (!length_fits(t.ns - v->doubt_from.ns, wait_ns) && start.ns < v->doubt_from.ns)
			return; /* it slept before the gap, and was seen to */
		if (start.ns < v->doubt_from.ns)
			start = v->doubt_from;
		v->doubted = false;
		if (v->doubt_lost > 1)
			vcpu_lose(v, v->doubt_from, sink);
	}
	if (start.ns < v->open.begin.ns)
		start = v->open.begin;
	vcpu_span_close(v, start, sink);
	vcpu_episode_begin(v, start, true);
	vcpu_span_begin(v, start, THREAD_SLEEPING, VCPU_BLOCKED, v->open.pcpu);
	v->open_hlt = false;
}

void vcpu_stack(struct vcpu *v, struct host_ns t, int32_t pid, uint32_t stack,
		enum vs_stack_role role, int64_t wait_ns, const struct vcpu_sink *sink)
{
	if (role == VS_STACK_WAITER)
		stack_reveals(v, t, stack, wait_ns, sink);
	if (vcpu_off_cpu(v) && length_fits(t.ns - v->episode_begin.ns, wait_ns)) {
		uint32_t *of_episode = role == VS_STACK_WAKER ? &v->waker_stack : &v->waiter_stack;

		stack_proves(v, t, pid, role, wait_ns);
		if (!*of_episode)
			*of_episode = stack;
		if (v->held_count && vcpu_held_at(v, v->held_count - 1)->episode == v->episode)
			episode_explain(v, v->held_count, stack, role, sink);
		return;
	}
	episode_explain(v, episode_find(v, wait_ns), stack, role, sink);
	vcpu_release(v, t, false, sink);
}
