/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/vcpu.h"

#include <stdlib.h>
#include <string.h>

/* Shorter waits for a pCPU are told at once, throttled or not. */
#define QUOTA_WAIT_NS 1000000ll

/* What a wait's class says about the vCPU's state. The classes that are not listed (a bare futex:
 * Debian's QEMU idles and locks in the same one) leave the decision to the other evidence. */
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

void vcpu_init(struct vcpu *v, uint32_t vm, uint32_t vcpu, int32_t tid, struct host_ns t)
{
	memset(v, 0, sizeof(*v));
	v->vm = vm;
	v->vcpu = vcpu;
	v->tid = tid;
	v->open = (struct vcpu_span){
		.vm = vm, .vcpu = vcpu, .tid = tid, .state = VCPU_UNKNOWN, .begin = t, .end = t};
}

void vcpu_fini(struct vcpu *v)
{
	free(v->held);
	v->held = NULL;
}

static bool off_cpu(const struct vcpu *v)
{
	return v->state == THREAD_READY || v->state == THREAD_SLEEPING ||
	       v->state == THREAD_STOPPED;
}

static enum vcpu_state running_state(const struct vcpu *v)
{
	static const enum vcpu_state states[] = {
		[MODE_UNSEEN] = VCPU_UNKNOWN,
		[MODE_GUEST] = VCPU_GUEST,
		[MODE_KVM] = VCPU_KVM,
		[MODE_VMM] = VCPU_VMM,
	};

	return v->kvm_seen ? states[v->mode] : VCPU_GUEST;
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

static void explain(struct vcpu_span *span, enum vcpu_state otherwise, enum wait_class class)
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

static int64_t length(const struct vcpu_span *span)
{
	return span->end.ns - span->begin.ns;
}

/* So much more of the wait for a pCPU was throttling: the whole counts as what most of it was. */
static void quota_charge(struct vcpu_span *span, int64_t ns)
{
	span->throttled_ns =
		span->throttled_ns + ns < length(span) ? span->throttled_ns + ns : length(span);
	if (span->throttled_ns >= length(span) / 2)
		span->state = VCPU_THROTTLED;
}

/* What the open span was, seen from its end. */
static struct vcpu_span closed(const struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink)
{
	struct vcpu_span span = v->open;

	span.end = t;
	if (off_cpu(v) && span.state != VCPU_UNKNOWN) {
		struct host_ns middle = {span.begin.ns + (t.ns - span.begin.ns) / 2};
		bool migrates, paused = sink->paused(sink->context, v, middle, &migrates);

		span.migrates = paused && migrates;
		if (v->state == THREAD_SLEEPING)
			span.state = paused ? VCPU_STOPPED : sleep_state(v, &span, middle, sink);
		span.waiter_stack = v->waiter_stack;
		span.waker_stack = v->waker_stack;
		if (span.waiter_stack)
			explain(&span, span.state,
				sink->wait_class(sink->context, v, span.waiter_stack));
	}
	if (v->throttled_ns && span.state == VCPU_RUNNABLE)
		quota_charge(&span, v->throttled_ns);
	span.pcpu_busy_ns = v->queue.busy_ns;
	for (unsigned i = 0; i < v->queue.n_holders; i++) {
		const struct vcpu_holder *h = &v->queue.holders[i];

		if (h->pid == 0) {
			span.pcpu_idle_ns += h->ns;
		} else if (h->ns > span.holder_ns) {
			span.holder_pid = h->pid;
			span.holder_ns = h->ns;
		}
	}
	return span;
}

struct vcpu_span vcpu_current(const struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink)
{
	struct vcpu_span span = closed(v, t, sink);

	if (v->doubted) {
		span.begin = v->doubt_from;
		span.state = VCPU_UNKNOWN;
	}
	return span;
}

static struct vcpu_held *held_at(const struct vcpu *v, uint32_t i)
{
	return &v->held[(v->held_first + i) % v->held_capacity];
}

struct host_ns vcpu_delivered(const struct vcpu *v)
{
	return v->held_count ? held_at(v, 0)->span.begin : v->open.begin;
}

void vcpu_release(struct vcpu *v, struct host_ns now, bool all, const struct vcpu_sink *sink)
{
	while (v->held_count) {
		const struct vcpu_held *h = held_at(v, 0);
		bool waiting = off_cpu(v) && h->episode == v->episode;

		if (!all && !h->settled && (waiting || now.ns - h->span.end.ns < MODEL_HOLD_NS))
			break;
		v->held_first = (v->held_first + 1) % v->held_capacity;
		v->held_count--;
		sink->span(sink->context, &h->span);
	}
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
		bigger[i] = *held_at(v, i);
	free(v->held);
	v->held = bigger;
	v->held_capacity = capacity;
	v->held_first = 0;
	return true;
}

static void held_push(struct vcpu *v, const struct vcpu_span *span, bool settled,
		      const struct vcpu_sink *sink)
{
	if (settled && !v->held_count) {
		sink->span(sink->context, span);
		return;
	}
	if (v->held_count == v->held_capacity && !held_grow(v)) {
		/* Full: a span without its stack is better than none. */
		vcpu_release(v, span->end, true, sink);
		sink->span(sink->context, span);
		return;
	}
	*held_at(v, v->held_count++) = (struct vcpu_held){
		.span = *span,
		.episode = settled ? 0 : v->episode,
		.settled = settled,
	};
}

/* A reading of the quota that is still to come may show that this wait was throttling. */
static bool quota_awaited(const struct vcpu *v, const struct vcpu_span *span)
{
	return v->quota_until.ns && span->state == VCPU_RUNNABLE && length(span) >= QUOTA_WAIT_NS &&
	       span->end.ns > v->quota_until.ns && span->end.ns - v->quota_until.ns < MODEL_HOLD_NS;
}

/* Ends the open span at `t` and queues it. What follows must be set by begin(). */
static void close_open(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink)
{
	if (t.ns > v->open.begin.ns) {
		struct vcpu_span span = closed(v, t, sink);

		bool settled = !off_cpu(v) || v->open.state == VCPU_UNKNOWN ||
			       (span.waiter_stack && span.waker_stack && !quota_awaited(v, &span));

		/* Whoever is told of it now must not find it open as well. */
		v->open.begin = t;
		v->open.state = VCPU_UNKNOWN;
		held_push(v, &span, settled, sink);
	}
}

static void queue_begin(struct vcpu *v, struct host_ns t)
{
	v->queue.segment_begin = t;
	v->queue.n_holders = 0;
	v->queue.busy_ns = 0;
}

static void begin(struct vcpu *v, struct host_ns t, enum thread_state thread, enum vcpu_state state,
		  uint16_t pcpu)
{
	v->state = thread;
	v->open = (struct vcpu_span){
		.vm = v->vm,
		.vcpu = v->vcpu,
		.tid = v->tid,
		.state = state,
		.begin = t,
		.end = t,
		.pcpu = pcpu,
		.exit = v->exit,
	};
	queue_begin(v, t);
	v->throttled_ns = 0;
}

/* Off its CPU, waiting for one, as far as `state` knows. */
static void begin_wait(struct vcpu *v, struct host_ns t, enum vcpu_state state, uint16_t pcpu)
{
	begin(v, t, THREAD_READY, state, pcpu);
}

/* The episode is over; what was too short to bring a stack needs no waiting for one. */
static void episode_end(struct vcpu *v, struct host_ns t)
{
	bool settled = t.ns - v->episode_begin.ns < MODEL_STACK_WAIT_NS;

	for (uint32_t i = v->held_count; settled && i-- > 0;) {
		struct vcpu_held *h = held_at(v, i);

		if (h->episode != v->episode)
			break;
		h->settled = !quota_awaited(v, &h->span);
	}
}

static void episode_begin(struct vcpu *v, struct host_ns t, bool seen)
{
	v->episode++;
	v->episode_seen = seen;
	v->episode_begin = t;
	v->waiter_stack = v->waker_stack = 0;
	v->unbroken = v->episode_begin;
	v->waking_known = v->holed = false;
}

/* An unsure thread had been `thread` since the gap ended. */
static void prove(struct vcpu *v, struct host_ns t, enum thread_state thread, uint16_t pcpu,
		  const struct vcpu_sink *sink)
{
	if (v->state != THREAD_UNSURE || !v->sure || v->sure_since.ns >= t.ns)
		return;
	close_open(v, v->sure_since, sink);
	episode_begin(v, v->sure_since, false);
	begin(v, v->sure_since, thread, thread == THREAD_READY ? VCPU_RUNNABLE : running_state(v),
	      pcpu);
}

/*
 * Are too few events missing for another mode? QEMU's work on an exit ends with an entry to the
 * guest, which it does not leave without an exit; KVM's also by handing over to QEMU. And a thread
 * off its CPU must come there first and leave again.
 */
static bool mode_certain(const struct vcpu *v)
{
	uint64_t turn = off_cpu(v) ? 2 : 0;

	return (v->mode == MODE_VMM && v->mode_lost < turn + 2) ||
	       (v->mode == MODE_KVM && v->mode_lost < turn + 1);
}

static void unsure(struct vcpu *v, struct host_ns from, const struct vcpu_sink *sink)
{
	uint16_t pcpu = v->open.pcpu;

	v->sure = false;
	if (!mode_certain(v)) {
		v->mode = MODE_UNSEEN;
		v->exit = (struct vcpu_exit){0};
	}
	if (v->state == THREAD_UNSEEN || v->state == THREAD_UNSURE)
		return;
	if (from.ns < v->open.begin.ns)
		from = v->open.begin;
	close_open(v, from, sink);
	if (off_cpu(v))
		episode_end(v, from);
	v->was_ready = v->state == THREAD_READY;
	begin(v, from, THREAD_UNSURE, VCPU_UNKNOWN, pcpu);
}

/* Can the missing events have led the thread away from its state and back? A turn on a CPU begins
 * and ends with a switch there, which one lost event cannot both be; a sleeper must be woken, too.
 */
static bool round_trip_possible(const struct vcpu *v, struct host_ns t)
{
	uint64_t most = v->n_doubts > VCPU_DOUBTS ? UINT64_MAX : 0;

	if (off_cpu(v) && v->unbroken.ns >= t.ns)
		return false;
	for (unsigned i = 0; i < v->n_doubts && i < VCPU_DOUBTS; i++) {
		if (v->doubts[i].lost > most)
			most = v->doubts[i].lost;
	}
	if (v->state == THREAD_RUNNING)
		return v->doubt_lost >= 2;
	return most >= 2 && (v->state == THREAD_READY || v->doubt_lost >= 3);
}

/* It had a turn after `from`: what was taken for one long wait since then was none. */
static void wait_fails(struct vcpu *v, struct host_ns from)
{
	for (uint32_t i = v->held_count; i-- > 0;) {
		struct vcpu_held *h = held_at(v, i);

		if (h->span.end.ns <= from.ns || (h->episode && h->episode != v->episode))
			break;
		if (h->span.state == VCPU_RUNNABLE || h->span.state == VCPU_THROTTLED) {
			h->span.state = VCPU_UNKNOWN;
			h->span.throttled_ns = 0;
		}
	}
}

/* The thread's next event shows in which state it was just before. */
static void doubt_end(struct vcpu *v, struct host_ns t, bool as_before,
		      const struct vcpu_sink *sink)
{
	bool holed = v->holed && v->state == THREAD_READY;

	v->holed = false;
	if (holed && !as_before)
		wait_fails(v, v->hole_from);
	if (!v->doubted) {
		if (holed && !as_before)
			unsure(v, v->open.begin, sink);
		return;
	}
	v->doubted = false;
	if (as_before && !round_trip_possible(v, t)) {
		v->mode_lost = 0;
		return;
	}
	if (holed)
		wait_fails(v, v->doubt_from);
	unsure(v, holed && !as_before ? v->open.begin : v->doubt_from, sink);
	if (v->doubt_over)
		vcpu_sure(v, v->doubt_until);
}

/*
 * A sleeper runs: it was woken, and the event is missing. A waker's stack tells when. Else an idle
 * CPU runs at once whom it is given, if the gap was there just before; or it was woken inside the
 * gap and has waited since. Returns whether it was so.
 */
static bool wakeup_missed(struct vcpu *v, struct host_ns t, uint16_t pcpu, int32_t from,
			  const struct vcpu_sink *sink)
{
	const int64_t at_once_ns = 1000000;
	struct host_ns begin = v->doubt_from, end = v->doubt_over ? v->doubt_until : t;

	if (!v->doubted || (v->state != THREAD_SLEEPING && v->state != THREAD_STOPPED) ||
	    (round_trip_possible(v, t) && !v->waking_known))
		return false;
	if (v->waking_known) {
		bool turn = round_trip_possible(v, t), here = pcpu == v->open.pcpu;
		struct vcpu_queue queue = v->queue;
		struct host_ns waking = v->waking.ns < v->open.begin.ns ? v->open.begin : v->waking;

		v->doubted = false;
		vcpu_woken(v, waking, pcpu, v->waking_pid, sink);
		if (here)
			v->queue = queue;
		if (turn) /* after that, for all that is known */
			unsure(v, waking, sink);
		return true;
	}
	v->doubted = false;
	if (from == 0 && t.ns - end.ns < at_once_ns) {
		vcpu_woken(v, t, pcpu, 0, sink);
		return true;
	}
	if (begin.ns < v->open.begin.ns)
		begin = v->open.begin;
	close_open(v, begin, sink);
	begin_wait(v, begin, VCPU_UNKNOWN, pcpu);
	close_open(v, end, sink);
	begin_wait(v, end, VCPU_RUNNABLE, pcpu);
	return true;
}

void vcpu_switch_in(struct vcpu *v, struct host_ns t, uint16_t pcpu, const struct tenure *tenures,
		    const struct vcpu_sink *sink)
{
	bool unseen = wakeup_missed(v, t, pcpu, tenures[VCPU_TENURES - 1].pid, sink);

	doubt_end(v, t, v->state == THREAD_READY, sink);
	unseen = unseen || v->state == THREAD_UNSURE;
	prove(v, t, THREAD_READY, pcpu, sink);
	/* Nobody counted who held the pCPU meanwhile. */
	for (int i = 0; unseen && v->state == THREAD_READY && i < VCPU_TENURES; i++) {
		if (v->queue.segment_begin.ns < tenures[i].from.ns)
			v->queue.segment_begin = tenures[i].from;
		vcpu_held_by(v, tenures[i].until, tenures[i].pid);
	}
	if (v->state == THREAD_RUNNING)
		v->open.state = VCPU_UNKNOWN; /* it left the CPU and nobody saw it */
	close_open(v, t, sink);
	if (off_cpu(v))
		episode_end(v, t);
	begin(v, t, THREAD_RUNNING, running_state(v), pcpu);
	vcpu_release(v, t, false, sink);
}

/* A debugger's SIGSTOP takes effect at once, and no SIGCONT need follow it; one sent to the process
 * may be long past when a thread that slept uninterruptibly comes to obey it. */
static bool signal_explains(const struct vcpu_signal *signal, struct host_ns t, uint32_t state)
{
	return signal->number && ((state & VS_TASK_STOPPED) ||
				  ((state & VS_TASK_TRACED) && t.ns - signal->t.ns < 1000000000));
}

void vcpu_switch_out(struct vcpu *v, struct host_ns t, uint16_t pcpu, uint32_t state,
		     const struct vcpu_signal *signal, const struct vcpu_sink *sink)
{
	/* It leaves the guest before it leaves the CPU. */
	doubt_end(v, t, v->state == THREAD_RUNNING && v->mode != MODE_GUEST, sink);
	prove(v, t, THREAD_RUNNING, pcpu, sink);
	if (v->state != THREAD_RUNNING)
		v->open.state = VCPU_UNKNOWN; /* it came onto the CPU and nobody saw it */
	close_open(v, t, sink);
	episode_begin(v, t, true);
	v->open_hlt = v->mode == MODE_KVM && v->hlt;
	if (state & (VS_TASK_STOPPED | VS_TASK_TRACED | VS_TASK_FROZEN)) {
		begin(v, t, THREAD_STOPPED, VCPU_STOPPED, pcpu);
		if (signal && signal_explains(signal, t, state)) {
			v->open.signal_pid = signal->sender;
			v->open.signal_number = signal->number;
		}
	} else if (state & (VS_TASK_EXIT | VS_TASK_DEAD)) {
		begin(v, t, THREAD_UNSEEN, VCPU_UNKNOWN, pcpu);
	} else if (state == VS_TASK_RUNNING) {
		begin(v, t, THREAD_READY, VCPU_RUNNABLE, pcpu);
	} else {
		begin(v, t, THREAD_SLEEPING, VCPU_BLOCKED, pcpu);
	}
	v->open.task_state = state;
}

void vcpu_woken(struct vcpu *v, struct host_ns t, uint16_t pcpu, int32_t waker,
		const struct vcpu_sink *sink)
{
	doubt_end(v, t, v->state == THREAD_SLEEPING || v->state == THREAD_STOPPED, sink);
	/* A wake-up of a thread that is not asleep only spares it the next sleep. */
	if (v->state == THREAD_RUNNING || v->state == THREAD_READY)
		return;
	v->open.waker_pid = waker;
	queue_begin(v, t);
	close_open(v, t, sink);
	if (v->state == THREAD_UNSEEN || v->state == THREAD_UNSURE)
		episode_begin(v, t, false);
	begin(v, t, THREAD_READY, VCPU_RUNNABLE, pcpu);
}

void vcpu_migrated(struct vcpu *v, uint16_t pcpu)
{
	v->open.pcpu = pcpu;
}

void vcpu_exited(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink)
{
	doubt_end(v, t, v->state == THREAD_RUNNING, sink);
	close_open(v, t, sink);
	begin(v, t, THREAD_UNSEEN, VCPU_UNKNOWN, v->open.pcpu);
}

/* An exit leaves the guest; KVM hands over to QEMU; either enters the guest again. */
static bool mode_leads_to(enum vcpu_mode from, enum vcpu_mode to)
{
	return to == MODE_GUEST ? from == MODE_KVM || from == MODE_VMM
				: from == (to == MODE_KVM ? MODE_GUEST : MODE_KVM);
}

/* The exit reasons that mean HLT, by isa. */
static bool exit_is_hlt(const struct vcpu_exit *exit)
{
	static const uint32_t hlt[] = {[1] = 12, [2] = 0x78};

	return exit->isa > 0 && exit->isa < 3 && exit->reason == hlt[exit->isa];
}

void vcpu_kvm(struct vcpu *v, struct host_ns t, uint16_t pcpu, enum vcpu_mode mode,
	      const struct vcpu_exit *exit, const struct vcpu_sink *sink)
{
	v->kvm_seen = true;
	doubt_end(v, t, v->state == THREAD_RUNNING && mode_leads_to(v->mode, mode), sink);
	prove(v, t, THREAD_RUNNING, pcpu, sink);
	if (off_cpu(v))
		v->open.state = VCPU_UNKNOWN; /* it came onto the CPU and nobody saw it */
	v->hlt = mode == MODE_KVM && exit_is_hlt(exit);
	if (v->state == THREAD_RUNNING && v->mode == mode && v->open.state == running_state(v))
		return;
	close_open(v, t, sink);
	v->mode_lost = 0;
	v->mode = mode;
	if (mode == MODE_GUEST)
		v->exit = (struct vcpu_exit){0};
	else if (mode == MODE_KVM)
		v->exit = (struct vcpu_exit){++v->n_exits, exit->reason, exit->isa};
	begin(v, t, THREAD_RUNNING, running_state(v), pcpu);
}

bool vcpu_waits(const struct vcpu *v)
{
	return v->state == THREAD_READY || (off_cpu(v) && v->waking_known);
}

void vcpu_held_by(struct vcpu *v, struct host_ns t, int32_t pid)
{
	int64_t ns = t.ns - v->queue.segment_begin.ns;
	struct vcpu_holder *least = v->queue.holders;

	if (ns <= 0)
		return;
	v->queue.segment_begin = t;
	v->queue.busy_ns += pid ? ns : 0;
	for (unsigned i = 0; i < v->queue.n_holders; i++) {
		if (v->queue.holders[i].pid == pid) {
			v->queue.holders[i].ns += ns;
			return;
		}
		if (v->queue.holders[i].ns < least->ns)
			least = &v->queue.holders[i];
	}
	if (v->queue.n_holders < VCPU_HOLDERS)
		least = &v->queue.holders[v->queue.n_holders++];
	*least = (struct vcpu_holder){.pid = pid, .ns = ns};
}

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
	uint32_t episode = last ? held_at(v, last - 1)->episode : 0;

	for (; last > 0 && held_at(v, last - 1)->episode == episode; last--) {
		struct vcpu_held *h = held_at(v, last - 1);

		if (h->settled)
			break;
		/* The first that fits is the wait's own; a later one that fits too is stale. */
		if (role == VS_STACK_WAKER) {
			if (!h->span.waker_stack)
				h->span.waker_stack = stack;
		} else if (!h->span.waiter_stack) {
			h->span.waiter_stack = stack;
			explain(&h->span, h->span.state, sink->wait_class(sink->context, v, stack));
		}
		h->settled =
			h->span.waiter_stack && h->span.waker_stack && !quota_awaited(v, &h->span);
	}
}

/* The end of the newest held episode that is as long as the wait: a count of entries, 0 if none. */
static uint32_t episode_find(const struct vcpu *v, int64_t wait_ns)
{
	uint32_t last = v->held_count;

	while (last > 0) {
		uint32_t first = last - 1;
		const struct vcpu_held *end = held_at(v, last - 1);
		int64_t ns;

		while (first > 0 && held_at(v, first - 1)->episode == end->episode)
			first--;
		ns = end->span.end.ns - held_at(v, first)->span.begin.ns;
		if (!end->settled && length_fits(ns, wait_ns))
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
	queue_begin(v, t);
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
	    !class_states[sink->wait_class(sink->context, v, stack)].decides)
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
			unsure(v, v->doubt_from, sink);
	}
	if (start.ns < v->open.begin.ns)
		start = v->open.begin;
	close_open(v, start, sink);
	episode_begin(v, start, true);
	begin(v, start, THREAD_SLEEPING, VCPU_BLOCKED, v->open.pcpu);
	v->open_hlt = false;
}

void vcpu_stack(struct vcpu *v, struct host_ns t, int32_t pid, uint32_t stack,
		enum vs_stack_role role, int64_t wait_ns, const struct vcpu_sink *sink)
{
	if (role == VS_STACK_WAITER)
		stack_reveals(v, t, stack, wait_ns, sink);
	if (off_cpu(v) && length_fits(t.ns - v->episode_begin.ns, wait_ns)) {
		uint32_t *of_episode = role == VS_STACK_WAKER ? &v->waker_stack : &v->waiter_stack;

		stack_proves(v, t, pid, role, wait_ns);
		if (!*of_episode)
			*of_episode = stack;
		if (v->held_count && held_at(v, v->held_count - 1)->episode == v->episode)
			episode_explain(v, v->held_count, stack, role, sink);
		return;
	}
	episode_explain(v, episode_find(v, wait_ns), stack, role, sink);
	vcpu_release(v, t, false, sink);
}

/* How much of a wait that nobody is charged for yet lies before `until`, if any of it came after
 * `from`: the counter advances when a throttling ends. */
static int64_t quota_chargeable(const struct vcpu_span *span, const struct quota_reading *r)
{
	int64_t end = span->end.ns < r->until.ns ? span->end.ns : r->until.ns;

	if (span->state != VCPU_RUNNABLE || span->end.ns <= r->from.ns)
		return 0;
	return end - span->begin.ns - span->throttled_ns;
}

/*
 * The counter adds up what all pCPUs were throttled, so the longest waits are charged first. One
 * whose pCPU idled meanwhile can hardly have been anything else; where others ran on it, a fair
 * share of the sum must suffice for all of it.
 */
void vcpu_quota(struct vcpu *v, const struct quota_reading *r, const struct vcpu_sink *sink)
{
	int64_t left = r->throttled_ns, share = left / (r->n_vcpus ? r->n_vcpus : 1);

	v->quota_until = r->until;
	while (left > 0) {
		bool open = v->state == THREAD_READY && v->open.begin.ns < r->until.ns;
		struct vcpu_span now = open ? closed(v, r->until, sink) : v->open;
		struct vcpu_span *most = open ? &now : NULL;
		int64_t ns = open ? quota_chargeable(&now, r) : 0;

		for (uint32_t i = 0; i < v->held_count; i++) {
			struct vcpu_span *span = &held_at(v, i)->span;
			int64_t more = quota_chargeable(span, r);

			if (more > ns) {
				ns = more;
				most = span;
			}
		}
		if (ns <= 0)
			break;
		if (most->pcpu_idle_ns < ns / 2 && ns > share + share / 4)
			break;
		ns = ns < left ? ns : left;
		left -= ns;
		if (most == &now)
			v->throttled_ns += ns;
		else
			quota_charge(most, ns);
	}
	vcpu_release(v, r->until, false, sink);
}

static void doubt_add(struct vcpu *v, struct host_ns from, uint16_t pcpu, uint64_t lost)
{
	unsigned i = 0;

	v->doubt_lost += lost;
	while (i < v->n_doubts && i < VCPU_DOUBTS && v->doubts[i].pcpu != pcpu)
		i++;
	if (i == v->n_doubts && i < VCPU_DOUBTS)
		v->doubts[v->n_doubts++] = (struct vcpu_doubt){.pcpu = pcpu, .from = from};
	if (i < VCPU_DOUBTS)
		v->doubts[i].lost += lost;
	else
		v->n_doubts = VCPU_DOUBTS + 1;
}

void vcpu_unsure(struct vcpu *v, struct host_ns from, uint16_t pcpu, uint64_t lost,
		 const struct vcpu_sink *sink)
{
	v->mode_lost += lost;
	if (v->state == THREAD_UNSEEN || v->state == THREAD_UNSURE) {
		unsure(v, from, sink);
		return;
	}
	if (v->holed && v->state == THREAD_READY) {
		/* It may have gone to sleep in the hole, and what is missing now be its wake-up. */
		wait_fails(v, v->hole_from);
		v->holed = v->doubted = false;
		unsure(v, v->open.begin, sink);
		return;
	}
	if (from.ns < v->open.begin.ns)
		from = v->open.begin;
	if (!v->doubted) {
		v->doubted = true;
		v->doubt_lost = 0;
		v->n_doubts = 0;
		v->doubt_from = from;
	}
	v->doubt_over = false;
	doubt_add(v, from, pcpu, lost);
}

/* A thread that waited before the gap may have had a turn in it: unknown, then waiting again as far
 * as nothing speaks against it. */
static void hole(struct vcpu *v, struct host_ns from, struct host_ns until,
		 const struct vcpu_sink *sink)
{
	uint16_t pcpu = v->open.pcpu;

	v->holed = true;
	v->hole_from = from;
	close_open(v, from, sink);
	begin_wait(v, from, VCPU_UNKNOWN, pcpu);
	close_open(v, until, sink);
	begin_wait(v, until, VCPU_RUNNABLE, pcpu);
}

void vcpu_turn_over(struct vcpu *v, struct host_ns t, uint16_t pcpu, const struct vcpu_sink *sink)
{
	bool unbroken = v->unbroken.ns >= t.ns;
	struct vcpu_doubt over;
	unsigned i = 0;

	if (!v->doubted || v->n_doubts > VCPU_DOUBTS)
		return;
	while (i < v->n_doubts && v->doubts[i].pcpu != pcpu)
		i++;
	if (i == v->n_doubts)
		return;
	over = v->doubts[i];
	/* Of a sleeper, two or more may have been a whole turn: that stays possible. */
	if (over.lost >= 2 && v->state != THREAD_READY)
		return;
	v->doubts[i] = v->doubts[--v->n_doubts];
	if (v->state != THREAD_READY)
		return;
	if (over.lost >= 2 && !unbroken && v->n_doubts) {
		v->doubted = false;
		unsure(v, v->doubt_from, sink);
		if (v->doubt_over)
			vcpu_sure(v, v->doubt_until);
		return;
	}
	if (over.lost >= 2 && !unbroken)
		hole(v, over.from, t, sink);
	/* Only a turn moves who waits for a CPU. */
	if (!v->n_doubts)
		v->doubted = false;
	for (i = 0, v->doubt_from = t; i < v->n_doubts; i++) {
		if (v->doubts[i].from.ns < v->doubt_from.ns)
			v->doubt_from = v->doubts[i].from;
	}
}

void vcpu_sure(struct vcpu *v, struct host_ns t)
{
	if (v->doubted) {
		v->doubt_over = true;
		v->doubt_until = t;
	}
	if (v->state == THREAD_UNSURE && !v->sure) {
		v->sure = true;
		v->sure_since = t;
	}
}

void vcpu_finish(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink)
{
	enum vcpu_state state;

	doubt_end(v, t, false, sink);
	state = v->open.state;
	close_open(v, t, sink);
	begin(v, t, v->state, state, v->open.pcpu);
	vcpu_release(v, t, true, sink);
}
