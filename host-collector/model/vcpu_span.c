/* SPDX-License-Identifier: GPL-2.0-only */
/* Handles the open span of a vCPU, determines its state when it ends, and queues the spans whose
 * state may still change. */
#include "host-collector/model/vcpu_internal.h"

#include <stdlib.h>

/* A stack comes with the next drain of the capture's ring; later than this it is missing. */
#define STACK_LATE_NS (MODEL_HOLD_NS / 4)
/* A capture that shows KVM's events shows one of a running thread within this time of its first. */
#define KVM_LATE_NS MODEL_HOLD_NS

/* What the class of a wait shows about the vCPU's state. For classes that are not listed, other
 * evidence decides (a bare futex: Debian's QEMU idles and locks in the same one). */
static const struct {
	bool decides;
	enum vcpu_state state;
} class_states[WAIT_CLASS_COUNT] = {
	[WAIT_HALT] = {true, VCPU_HALTED},        [WAIT_PAUSE] = {true, VCPU_STOPPED},
	[WAIT_FREEZER] = {true, VCPU_STOPPED},    [WAIT_VMM_LOCK] = {true, VCPU_BLOCKED},
	[WAIT_BLOCK_IO] = {true, VCPU_BLOCKED},   [WAIT_USERFAULT] = {true, VCPU_BLOCKED},
	[WAIT_PAGE_FAULT] = {true, VCPU_BLOCKED}, [WAIT_MMU_LOCK] = {true, VCPU_BLOCKED},
	[WAIT_RECLAIM] = {true, VCPU_BLOCKED},    [WAIT_SPLIT_LOCK] = {true, VCPU_BLOCKED},
};

bool vcpu_wait_decides(enum wait_class class)
{
	return class_states[class].decides;
}

bool vcpu_off_cpu(const struct vcpu *v)
{
	return v->state == THREAD_READY || v->state == THREAD_SLEEPING ||
	       v->state == THREAD_STOPPED;
}

enum vcpu_state vcpu_running_state(const struct vcpu *v)
{
	static const enum vcpu_state states[] = {
		[MODE_UNSEEN] = VCPU_UNKNOWN,
		[MODE_GUEST] = VCPU_GUEST,
		[MODE_KVM] = VCPU_KVM,
		[MODE_VMM] = VCPU_VMM,
	};

	return v->kvm_seen ? states[v->mode] : VCPU_GUEST;
}

void vcpu_span_refute(struct vcpu *v)
{
	if (v->open.state != VCPU_UNKNOWN)
		v->open.why = v->gap_why;
	v->open.state = VCPU_UNKNOWN;
}

void vcpu_kvm_begins(struct vcpu *v, struct host_ns t)
{
	if (v->kvm_own)
		return;
	v->kvm_own = true;
	for (uint32_t i = 0; i < v->held_count; i++) {
		struct vcpu_held *h = vcpu_held_at(v, i);

		if (!h->assumed)
			continue;
		h->span.state = VCPU_UNKNOWN;
		h->span.why = v->mode_why;
		h->assumed = false;
		h->settled = true;
	}
	if (v->state == THREAD_RUNNING && v->open.state == VCPU_GUEST &&
	    t.ns - v->first.ns < KVM_LATE_NS) {
		v->open.state = VCPU_UNKNOWN;
		v->open.why = v->mode_why;
	}
}

/* A sleep, without a stack: the last exit, the kind of sleep, then the guest's own account. */
static enum vcpu_state sleep_state(const struct vcpu *v, const struct vcpu_span *span,
				   struct host_ns middle, const struct vcpu_sink *sink)
{
	if ((span->task_state & VS_TASK_UNINTERRUPTIBLE) &&
	    !(span->task_state & VS_TASK_INTERRUPTIBLE))
		return VCPU_BLOCKED; /* HLT sleeps interruptibly */
	if (v->open_hlt)
		return VCPU_HALTED;
	if (v->kvm_seen && v->mode == MODE_KVM)
		return VCPU_BLOCKED; /* inside another exit */
	/* The guest runs nothing while its vCPU sleeps, so the middle stands for the whole, and
	 * keeps away from the edges, where the clocks' error could mislead. */
	if (sink->account(sink->context, v, middle) != GUEST_ACCOUNT_BUSY)
		return VCPU_HALTED;
	/* Its exit is missing, which could have been a HLT in a paravirtual lock. */
	return v->kvm_seen && v->mode != MODE_VMM ? VCPU_UNKNOWN : VCPU_BLOCKED;
}

void vcpu_span_explain(struct vcpu_span *span, enum vcpu_state otherwise, enum wait_class class)
{
	span->wait_class = class;
	span->state = otherwise;
	if (otherwise == VCPU_STOPPED || otherwise == VCPU_RUNNABLE)
		return;
	if (class_states[class].decides)
		span->state = class_states[class].state;
	else if (class == WAIT_IDLE_LOOP && otherwise == VCPU_BLOCKED)
		span->state =
			VCPU_STOPPED; /* a vCPU whose guest runs a task idles only if paused */
}

enum wait_class vcpu_episode_class(const struct vcpu *v, uint32_t waiter_stack,
				   uint32_t waker_stack, const struct vcpu_sink *sink)
{
	enum wait_class class = WAIT_NONE;

	if (waiter_stack)
		class = sink->wait_class(sink->context, v, waiter_stack);
	if (class == WAIT_VMM_LOCK && waker_stack &&
	    sink->wait_class(sink->context, v, waker_stack) == WAIT_FREEZER)
		return WAIT_FREEZER;
	return class;
}

int64_t vcpu_span_length(const struct vcpu_span *span)
{
	return span->end.ns - span->begin.ns;
}

/* So much more of the wait for a pCPU was throttling: the whole counts as what most of it was. */
void vcpu_quota_charge(struct vcpu_span *span, int64_t ns, uint32_t cgroup)
{
	if (ns > span->throttled_ns)
		span->quota = cgroup;
	span->throttled_ns = span->throttled_ns + ns < vcpu_span_length(span)
				     ? span->throttled_ns + ns
				     : vcpu_span_length(span);
	if (span->throttled_ns >= vcpu_span_length(span) / 2)
		span->state = VCPU_THROTTLED;
}

/* The guest touched memory that the host's tables do not map: EPT violation, nested page fault. */
static bool exit_is_fault(const struct vcpu_exit *exit)
{
	return exit->serial && ((exit->isa == 1 && exit->reason == 48) ||
				(exit->isa == 2 && exit->reason == 0x400));
}

/* The state of the open span, as known at its end. */
void vcpu_span_closed(const struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink,
		      struct vcpu_span *span)
{
	*span = v->open;
	span->end = t;
	if (vcpu_off_cpu(v) && span->state != VCPU_UNKNOWN) {
		struct host_ns middle = {span->begin.ns + (t.ns - span->begin.ns) / 2};
		bool paused = sink->paused(sink->context, v, middle, span);

		if (v->state == THREAD_SLEEPING)
			span->state = paused ? VCPU_STOPPED : sleep_state(v, span, middle, sink);
		span->waiter_stack = v->waiter_stack;
		span->waker_stack = v->waker_stack;
		span->faulted = span->state == VCPU_BLOCKED && v->mode == MODE_KVM &&
				exit_is_fault(&span->exit) &&
				(span->task_state & VS_TASK_UNINTERRUPTIBLE) &&
				!(span->task_state & VS_TASK_INTERRUPTIBLE);
		span->sampled = v->waiter_stack && v->waiter_sampled;
		if (span->waiter_stack)
			vcpu_span_explain(
				span, span->state,
				vcpu_episode_class(v, span->waiter_stack, span->waker_stack, sink));
	}
	if (span->state == VCPU_UNKNOWN && !span->why)
		span->why = v->mode_why;
	if (v->throttled_ns && span->state == VCPU_RUNNABLE)
		vcpu_quota_charge(span, v->throttled_ns, v->throttled_by);
	span->pcpu_busy_ns = v->queue.busy_ns;
	for (unsigned i = 0; i < v->queue.n_holders; i++) {
		const struct vcpu_holder *h = &v->queue.holders[i];

		if (h->pid == 0) {
			span->pcpu_idle_ns += h->ns;
		} else if (h->ns > span->holder_ns) {
			span->holder_pid = h->pid;
			span->holder_ns = h->ns;
		}
	}
}

struct vcpu_span vcpu_current(const struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink)
{
	struct vcpu_span span;

	vcpu_span_closed(v, t, sink, &span);
	if (v->doubted) {
		span.begin = v->doubt_from;
		span.state = VCPU_UNKNOWN;
		span.why = v->gap_why;
	}
	return span;
}

struct vcpu_held *vcpu_held_at(const struct vcpu *v, uint32_t i)
{
	return &v->held[(v->held_first + i) % v->held_capacity];
}

struct host_ns vcpu_delivered(const struct vcpu *v)
{
	return v->held_count ? vcpu_held_at(v, 0)->span.begin : v->open.begin;
}

/*
 * A sleep that was long enough to bring its stack, which did not come: an event is missing, and the
 * freezer's or a lock's sleep looks like any other.
 */
static void stack_missed(const struct vcpu *v, struct vcpu_held *h, struct host_ns now)
{
	int64_t since = now.ns - h->span.end.ns;

	if (h->guessed && !h->settled && !h->span.waiter_stack && v->stack_due_ns &&
	    vcpu_span_length(&h->span) >= v->stack_due_ns && since >= STACK_LATE_NS) {
		h->span.state = VCPU_UNKNOWN;
		h->span.why = UNKNOWN_NO_STACK;
	}
}

static void span_emit(struct vcpu_span *span, const struct vcpu_sink *sink)
{
	if (span->state != VCPU_UNKNOWN)
		span->why = UNKNOWN_NONE;
	sink->span(sink->context, span);
}

/* Nothing may change it any more? */
static bool is_ripe(const struct vcpu *v, const struct vcpu_held *h, struct host_ns now)
{
	if (h->assumed)
		return now.ns - v->first.ns >= KVM_LATE_NS;
	return h->settled || now.ns - h->span.end.ns >= MODEL_HOLD_NS;
}

void vcpu_release(struct vcpu *v, struct host_ns now, bool all, const struct vcpu_sink *sink)
{
	while (v->held_count) {
		struct vcpu_held *h = vcpu_held_at(v, 0);
		bool waiting = vcpu_off_cpu(v) && h->episode == v->episode;

		if (!all && ((waiting && !h->settled) || !is_ripe(v, h, now)))
			break;
		if (!waiting)
			stack_missed(v, h, now);
		v->held_first = (v->held_first + 1) % v->held_capacity;
		v->held_count--;
		span_emit(&h->span, sink);
	}
	/* Begin anew with the entry that was used last: it is more likely to be in a cache. */
	if (!v->held_count)
		v->held_first = 0;
}

static bool held_grow(struct vcpu *v)
{
	uint32_t capacity = v->held_capacity ? 2 * v->held_capacity : 16;
	struct vcpu_held *bigger;

	if (capacity > VCPU_HELD_MAX)
		return false;
	bigger = malloc(capacity * sizeof(*bigger));
	if (!bigger)
		return false;
	for (uint32_t i = 0; i < v->held_count; i++)
		bigger[i] = *vcpu_held_at(v, i);
	free(v->held);
	v->held = bigger;
	v->held_capacity = capacity;
	v->held_first = 0;
	return true;
}

static void held_push(struct vcpu *v, struct vcpu_span *span, bool settled, bool guessed,
		      const struct vcpu_sink *sink)
{
	bool assumed = !v->kvm_own && v->state == THREAD_RUNNING && span->state == VCPU_GUEST &&
		       span->end.ns - v->first.ns < KVM_LATE_NS;

	if (settled && !assumed && !v->held_count) {
		span_emit(span, sink);
		return;
	}
	if (v->held_count == v->held_capacity && !held_grow(v)) {
		/* Full: a span without its stack is better than none. */
		vcpu_release(v, span->end, true, sink);
		span_emit(span, sink);
		return;
	}
	*vcpu_held_at(v, v->held_count++) = (struct vcpu_held){
		.span = *span,
		.episode = settled ? 0 : v->episode,
		.guessed = guessed,
		.settled = settled && !assumed,
		.assumed = assumed,
	};
}

/* A reading of the quota that is still to come may show that this wait was throttling. */
bool vcpu_quota_awaited(const struct vcpu *v, const struct vcpu_span *span)
{
	return v->quota_until.ns && span->state == VCPU_RUNNABLE &&
	       vcpu_span_length(span) >= QUOTA_WAIT_NS && span->end.ns > v->quota_until.ns &&
	       span->end.ns - v->quota_until.ns < MODEL_HOLD_NS;
}

bool vcpu_short_awaited(const struct vcpu *v, const struct vcpu_held *h)
{
	const struct vcpu_span *span = &h->span;
	const bool unclear =
		span->state == VCPU_BLOCKED || (span->state == VCPU_HALTED && h->guessed);

	return v->shorts_sampled && unclear && !span->waiter_stack && !span->inferred &&
	       (!v->stack_due_ns || vcpu_span_length(span) < v->stack_due_ns);
}

/* HLT sleeps interruptibly, and only the first sleep after its exit is surely its own. */
static bool sleep_guessed(const struct vcpu *v, const struct vcpu_span *span)
{
	return v->state == THREAD_SLEEPING &&
	       (span->state == VCPU_HALTED || span->state == VCPU_BLOCKED) &&
	       (span->task_state & VS_TASK_INTERRUPTIBLE) && !(v->open_hlt && v->hlt_sleeps == 1);
}

/* The time before a thread was captured has a reason of its own. */
static void unfollowed_close(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink)
{
	struct vcpu_span span;

	if (v->open.state != VCPU_UNKNOWN || v->open.why != UNKNOWN_NOT_SEEN || !v->is_followed ||
	    v->followed.ns <= v->open.begin.ns)
		return;
	span = v->open;
	span.end = v->followed.ns < t.ns ? v->followed : t;
	span.why = UNKNOWN_NOT_CAPTURED;
	v->open.begin = span.end;
	held_push(v, &span, true, false, sink);
}

/* Ends the open span at `t` and queues it. What follows must be set by begin(). */
void vcpu_span_close(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink)
{
	if (t.ns > v->open.begin.ns)
		unfollowed_close(v, t, sink);
	if (t.ns > v->open.begin.ns) {
		struct vcpu_span span;
		bool guessed, settled;

		vcpu_span_closed(v, t, sink, &span);
		guessed = sleep_guessed(v, &span);
		settled = !vcpu_off_cpu(v) || v->open.state == VCPU_UNKNOWN ||
			  (span.waiter_stack && span.waker_stack && !vcpu_quota_awaited(v, &span));
		if (span.state == VCPU_RUNNABLE && v->queue.n_holders > 1)
			sink->crowd(sink->context, v->queue.holders, v->queue.n_holders, &span);
		/* An observer that receives this span must not find it open as well. */
		v->open.begin = t;
		v->open.state = VCPU_UNKNOWN;
		held_push(v, &span, settled, guessed, sink);
	}
}

void vcpu_queue_begin(struct vcpu *v, struct host_ns t)
{
	v->queue.segment_begin = t;
	v->queue.n_holders = 0;
	v->queue.busy_ns = 0;
}

/* Why the state is not known of a thread that has just come to v->state, if it is not. */
static enum unknown_reason why_unknown(const struct vcpu *v)
{
	if (v->state == THREAD_UNSEEN || v->state == THREAD_UNSURE)
		return v->why;
	return v->state == THREAD_RUNNING ? v->mode_why : v->gap_why;
}

void vcpu_span_begin(struct vcpu *v, struct host_ns t, enum thread_state thread,
		     enum vcpu_state state, uint16_t pcpu)
{
	v->state = thread;
	if (!v->is_seen && thread != THREAD_UNSEEN) {
		v->is_seen = true;
		v->first = t;
	}
	v->open = (struct vcpu_span){
		.vm = v->vm,
		.vcpu = v->vcpu,
		.tid = v->tid,
		.state = state,
		.why = why_unknown(v),
		.begin = t,
		.end = t,
		.pcpu = pcpu,
		.exit = v->exit,
	};
	vcpu_queue_begin(v, t);
	if (state != VCPU_UNKNOWN)
		v->open.why = UNKNOWN_NONE;
	v->throttled_ns = 0;
	v->throttled_by = 0;
}

/* Off its CPU, waiting for one, as far as `state` knows. */
void vcpu_wait_begin(struct vcpu *v, struct host_ns t, enum vcpu_state state, uint16_t pcpu)
{
	vcpu_span_begin(v, t, THREAD_READY, state, pcpu);
}

/* The episode is over; what was too short to bring a stack needs no waiting for one. */
void vcpu_episode_end(struct vcpu *v, struct host_ns t)
{
	bool settled = t.ns - v->episode_begin.ns < MODEL_STACK_WAIT_NS;

	for (uint32_t i = v->held_count; settled && i-- > 0;) {
		struct vcpu_held *h = vcpu_held_at(v, i);

		if (h->episode != v->episode)
			break;
		h->settled = !vcpu_quota_awaited(v, &h->span) && !vcpu_short_awaited(v, h);
	}
}

void vcpu_episode_begin(struct vcpu *v, struct host_ns t, bool seen)
{
	v->episode++;
	v->episode_seen = seen;
	v->off_lost = 0;
	v->episode_begin = t;
	v->waiter_stack = v->waker_stack = 0;
	v->waiter_sampled = false;
	v->unbroken = v->episode_begin;
	v->waking_known = v->holed = false;
}
