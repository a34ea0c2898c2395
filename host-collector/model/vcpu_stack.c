/* SPDX-License-Identifier: GPL-2.0-only */
/* Assigns stacks, which arrive after a wait, to their wait, and derives what they prove about it.
 */
#include "host-collector/model/vcpu_internal.h"

/* Returns true if a wait of `length` fits what the capture measured, up to its rounding. */
static bool length_fits(int64_t length, int64_t wait_ns)
{
	int64_t slack = 1000000 + wait_ns / 16;

	return wait_ns == 0 || (length >= wait_ns - slack && length <= wait_ns + slack);
}

/* Adds a stack to the held spans of one episode, which end before `last`. */
static void episode_explain(struct vcpu *v, uint32_t last, uint32_t stack, enum vs_stack_role role,
			    const struct vcpu_sink *sink)
{
	const bool is_short = role == VS_STACK_SHORT;
	uint32_t episode = last ? vcpu_held_at(v, last - 1)->episode : 0;

	for (; last > 0 && vcpu_held_at(v, last - 1)->episode == episode; last--) {
		struct vcpu_held *h = vcpu_held_at(v, last - 1);

		enum wait_class class;

		if (h->settled || h->assumed)
			break;
		/* The first that fits is the wait's own; a later one that fits too is stale. */
		if (role == VS_STACK_WAKER) {
			if (!h->span.waker_stack)
				h->span.waker_stack = stack;
		} else if (!h->span.waiter_stack) {
			h->span.waiter_stack = stack;
			h->span.sampled = is_short;
		}
		class = vcpu_episode_class(v, h->span.waiter_stack, h->span.waker_stack, sink);
		if (h->span.waiter_stack && class != h->span.wait_class)
			vcpu_span_explain(&h->span, h->span.state, class);
		h->settled = h->span.waiter_stack && (h->span.waker_stack || is_short) &&
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
	if (role != VS_STACK_WAKER) {
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

/* ---- short waits, of which samples bring their stack ---- */

static int kind_of(const struct vcpu_span *span)
{
	return span->task_state & VS_TASK_INTERRUPTIBLE ? 0 : 1;
}

/* The kind of sleep of an episode, as an index of short_class; -1: it has none in hand. */
static int sleep_kind(const struct vcpu *v, uint32_t episode)
{
	const struct vcpu_span *span = NULL;

	if (v->state == THREAD_SLEEPING && v->episode == episode)
		span = &v->open;
	for (uint32_t i = v->held_count; !span && i-- > 0;) {
		const struct vcpu_held *h = vcpu_held_at(v, i);

		if (h->episode == episode && h->span.task_state)
			span = &h->span;
	}
	return span ? kind_of(span) : -1;
}

/* A short sleep was of this class, if the sample that followed stands for it. */
static void short_infer(struct vcpu *v, struct vcpu_held *h, enum wait_class class, bool again,
			const struct vcpu_sink *sink)
{
	struct vcpu_span *span = &h->span;
	struct host_ns middle = {span->begin.ns + vcpu_span_length(span) / 2};
	struct vcpu_span as = *span;

	vcpu_span_explain(&as, VCPU_BLOCKED, class);
	if (!vcpu_wait_decides(class) || as.state != VCPU_BLOCKED)
		return;
	/* Without KVM's events it may have been a halt: two samples of one class must enclose it,
	 * and the guest's own account goes before them. */
	if (span->state == VCPU_HALTED &&
	    (!again || sink->account(sink->context, v, middle) == GUEST_ACCOUNT_IDLE))
		return;
	span->wait_class = class;
	span->state = VCPU_BLOCKED;
	span->inferred = true;
	h->settled = !vcpu_quota_awaited(v, span);
}

/* A sample stands for the short sleeps of its kind before it. */
static void shorts_explain(struct vcpu *v, uint32_t episode, enum wait_class class,
			   const struct vcpu_sink *sink)
{
	const int kind = sleep_kind(v, episode);
	bool again;

	if (kind < 0)
		return;
	again = v->short_class[kind] == class;
	v->short_class[kind] = class;
	for (uint32_t i = 0; i < v->held_count; i++) {
		struct vcpu_held *h = vcpu_held_at(v, i);

		if (h->episode && h->episode != episode && !h->settled && !h->assumed &&
		    vcpu_short_awaited(v, h) && kind_of(&h->span) == kind)
			short_infer(v, h, class, again, sink);
	}
}

void vcpu_stack(struct vcpu *v, struct host_ns t, int32_t pid, uint32_t stack,
		enum vs_stack_role role, int64_t wait_ns, const struct vcpu_sink *sink)
{
	uint32_t last, episode;
	bool own;

	if (role == VS_STACK_WAITER)
		stack_reveals(v, t, stack, wait_ns, sink);
	own = vcpu_off_cpu(v) && length_fits(t.ns - v->episode_begin.ns, wait_ns);
	episode = v->episode;
	if (own) {
		uint32_t *of_episode = role == VS_STACK_WAKER ? &v->waker_stack : &v->waiter_stack;

		stack_proves(v, t, pid, role, wait_ns);
		if (!*of_episode)
			*of_episode = stack;
		v->waiter_sampled |= role == VS_STACK_SHORT;
		if (v->held_count && vcpu_held_at(v, v->held_count - 1)->episode == v->episode)
			episode_explain(v, v->held_count, stack, role, sink);
	} else {
		last = episode_find(v, wait_ns);
		episode = last ? vcpu_held_at(v, last - 1)->episode : 0;
		episode_explain(v, last, stack, role, sink);
	}
	if (role == VS_STACK_SHORT && episode)
		shorts_explain(v, episode, sink->wait_class(sink->context, v, stack), sink);
	if (!own)
		vcpu_release(v, t, false, sink);
}
