/* SPDX-License-Identifier: GPL-2.0-only */
/* Decides after a loss, when the thread's next event arrives, whether the thread was in the same
 * state throughout the gap, or from when on its state is unknown. */
#include "host-collector/model/vcpu_internal.h"

static struct host_ns later(struct host_ns a, struct host_ns b)
{
	return a.ns > b.ns ? a : b;
}

/* An unsure thread had been `thread` since the gap ended. */
void vcpu_prove(struct vcpu *v, struct host_ns t, enum thread_state thread, uint16_t pcpu,
		const struct vcpu_sink *sink)
{
	if (v->state != THREAD_UNSURE || !v->sure || v->sure_since.ns >= t.ns)
		return;
	vcpu_span_close(v, v->sure_since, sink);
	vcpu_episode_begin(v, v->sure_since, false);
	vcpu_span_begin(v, v->sure_since, thread,
			thread == THREAD_READY ? VCPU_RUNNABLE : vcpu_running_state(v), pcpu);
}

/*
 * Returns true if too few events are missing for another mode in between. QEMU's handling of an
 * exit ends with a VM-entry, and the guest is left only by a VM-exit. KVM's handling may also end
 * with a return to QEMU. A thread that is off its CPU must first be switched in, and later be
 * switched out again.
 */
static bool mode_certain(const struct vcpu *v)
{
	uint64_t turn = vcpu_off_cpu(v) ? 2 : 0;

	return (v->mode == MODE_VMM && v->mode_lost < turn + 2) ||
	       (v->mode == MODE_KVM && v->mode_lost < turn + 1);
}

void vcpu_lose(struct vcpu *v, struct host_ns from, const struct vcpu_sink *sink)
{
	uint16_t pcpu = v->open.pcpu;

	v->sure = false;
	if (!mode_certain(v)) {
		v->mode = MODE_UNSEEN;
		v->mode_why = v->gap_why;
		v->exit = (struct vcpu_exit){0};
	}
	if (v->state == THREAD_UNSEEN || v->state == THREAD_UNSURE)
		return;
	if (from.ns < v->open.begin.ns)
		from = v->open.begin;
	vcpu_span_close(v, from, sink);
	if (vcpu_off_cpu(v))
		vcpu_episode_end(v, from);
	v->was_ready = v->state == THREAD_READY;
	v->presumed = false;
	v->why = v->gap_why;
	vcpu_span_begin(v, from, THREAD_UNSURE, VCPU_UNKNOWN, pcpu);
}

/*
 * The number of events that a turn on a CPU consists of: a switch to the thread and a switch away
 * from it, and for a thread between two VM-entries also an entry and an exit. Without those two the
 * thread was not in the guest, and its wait counts as unbroken.
 */
static uint64_t turn_events(const struct vcpu *v)
{
	return v->kvm_seen && (v->mode == MODE_KVM || v->mode == MODE_GUEST) ? 4 : 2;
}

/* Can what is missing on this pCPU be a turn? Elsewhere than where it waits the thread must have
 * been brought there first, which may be missing there or elsewhere. */
static bool turn_possible(const struct vcpu *v, const struct vcpu_doubt *d)
{
	return d->lost >= turn_events(v) &&
	       (d->own || d->pcpu == v->open.pcpu || v->off_lost > turn_events(v));
}

/* Can the missing events have led the thread away from its state and back? A sleeper must be woken
 * before it has a turn. */
static bool round_trip_possible(const struct vcpu *v, struct host_ns t)
{
	bool turn = false;

	if (vcpu_off_cpu(v) && v->unbroken.ns >= t.ns)
		return false;
	if (v->state == THREAD_RUNNING)
		return v->doubt_lost >= 2;
	if (v->n_doubts > VCPU_DOUBTS)
		return true;
	for (unsigned i = 0; i < v->n_doubts; i++)
		turn |= turn_possible(v, &v->doubts[i]);
	return turn && (v->state == THREAD_READY || v->doubt_lost > turn_events(v));
}

/* It may have had a turn after `from` (or has: !presumed): what was taken for one long wait since
 * then may be none. */
static void wait_fails(struct vcpu *v, struct host_ns from, bool presumed)
{
	for (uint32_t i = v->held_count; i-- > 0;) {
		struct vcpu_held *h = vcpu_held_at(v, i);

		if (h->span.end.ns <= from.ns || (h->episode && h->episode != v->episode))
			break;
		if (h->span.state == VCPU_RUNNABLE || h->span.state == VCPU_THROTTLED) {
			h->span.state = VCPU_UNKNOWN;
			h->span.why = v->gap_why;
			h->span.throttled_ns = 0;
			h->span.presumed = true;
			h->span.presumed_state = VCPU_RUNNABLE;
		}
		h->span.presumed &= presumed;
	}
}

/* The thread waited for a CPU: nothing is known from `from` on, but presumably it still does. */
static void wait_lose(struct vcpu *v, struct host_ns from, const struct vcpu_sink *sink)
{
	struct host_ns since = v->holed && v->hole_from.ns < from.ns ? v->hole_from : from;

	vcpu_lose(v, from, sink);
	v->open.presumed = v->presumed = true;
	v->open.presumed_state = VCPU_RUNNABLE;
	v->presumed_from = since;
}

void vcpu_presumption_fails(struct vcpu *v)
{
	if (!v->presumed)
		return;
	v->presumed = v->open.presumed = false;
	wait_fails(v, v->presumed_from, false);
}

/* The thread's next event shows in which state it was just before. */
void vcpu_doubt_end(struct vcpu *v, struct host_ns t, bool as_before, const struct vcpu_sink *sink)
{
	bool holed = v->holed && v->state == THREAD_READY;
	bool asleep = v->state == THREAD_SLEEPING || v->state == THREAD_STOPPED;
	enum vcpu_state state;

	v->holed = false;
	if (holed && !as_before)
		wait_fails(v, v->hole_from, false);
	if (!v->doubted) {
		if (holed && !as_before)
			vcpu_lose(v, v->open.begin, sink);
		return;
	}
	v->doubted = false;
	if (as_before && !round_trip_possible(v, t)) {
		v->mode_lost = 0;
		return;
	}
	state = v->state == THREAD_READY ? VCPU_RUNNABLE : vcpu_running_state(v);
	vcpu_lose(v, holed && !as_before ? v->open.begin : v->doubt_from, sink);
	if (as_before && !asleep && state != VCPU_UNKNOWN) {
		v->open.presumed = true;
		v->open.presumed_state = state;
	}
	/* What it did on the CPU since then is also presumed, unless its mode is known. */
	if (v->doubt_over &&
	    !(v->open.presumed && state != VCPU_RUNNABLE && vcpu_running_state(v) == VCPU_UNKNOWN))
		vcpu_sure(v, later(v->doubt_until, v->open.begin));
}

/*
 * A thread that slept now runs, so its wake-up is among the lost events. The stack event of the
 * waker has its time, if there is one. Otherwise: if the gap ends just before the switch and the
 * CPU was idle, the thread ran as soon as it was woken; else it was woken inside the gap and has
 * waited since. Returns true if one of these holds.
 */
bool vcpu_wakeup_missed(struct vcpu *v, struct host_ns t, uint16_t pcpu, int32_t from,
			const struct vcpu_sink *sink)
{
	const int64_t at_once_ns = 1000000;
	struct host_ns begin = v->doubt_from, end = v->doubt_over ? v->doubt_until : t;
	bool turn = round_trip_possible(v, t);

	if (!v->doubted || (v->state != THREAD_SLEEPING && v->state != THREAD_STOPPED) ||
	    (turn && !v->waking_known))
		return false;
	if (v->waking_known) {
		bool here = pcpu == v->open.pcpu;
		struct vcpu_queue queue = v->queue;
		struct host_ns waking = v->waking.ns < v->open.begin.ns ? v->open.begin : v->waking;

		v->doubted = false;
		vcpu_woken(v, waking, pcpu, v->waking_pid, sink);
		if (here)
			v->queue = queue;
		if (turn) /* after that, for all that is known */
			vcpu_lose(v, waking, sink);
		return true;
	}
	v->doubted = false;
	if (from == 0 && t.ns - end.ns < at_once_ns) {
		vcpu_woken(v, t, pcpu, 0, sink);
		return true;
	}
	if (begin.ns < v->open.begin.ns)
		begin = v->open.begin;
	vcpu_span_close(v, begin, sink);
	vcpu_wait_begin(v, begin, VCPU_UNKNOWN, pcpu);
	vcpu_span_close(v, end, sink);
	vcpu_wait_begin(v, end, VCPU_RUNNABLE, pcpu);
	return true;
}

static void doubt_add(struct vcpu *v, struct host_ns from, uint16_t pcpu, uint64_t lost)
{
	unsigned i = 0;

	v->doubt_lost += lost;
	while (i < v->n_doubts && i < VCPU_DOUBTS && v->doubts[i].pcpu != pcpu)
		i++;
	if (i == v->n_doubts && i < VCPU_DOUBTS)
		v->doubts[v->n_doubts++] = (struct vcpu_doubt){.pcpu = pcpu, .from = from};
	if (i >= VCPU_DOUBTS) {
		v->n_doubts = VCPU_DOUBTS + 1;
		return;
	}
	v->doubts[i].lost += lost;
	v->doubts[i].own |= pcpu == v->open.pcpu;
}

void vcpu_unsure(struct vcpu *v, struct host_ns from, uint16_t pcpu, uint64_t lost,
		 const struct vcpu_sink *sink)
{
	v->mode_lost += lost;
	v->off_lost += lost;
	if (v->state == THREAD_UNSEEN || v->state == THREAD_UNSURE) {
		vcpu_lose(v, from, sink);
		return;
	}
	if (v->holed && v->state == THREAD_READY) {
		/* It may have gone to sleep in the hole, and what is missing now be its wake-up. */
		wait_fails(v, v->hole_from, true);
		v->doubted = false;
		wait_lose(v, v->open.begin, sink);
		v->holed = false;
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

	if (from.ns < v->open.begin.ns) /* up to there is another hole */
		from = v->open.begin;
	if (!v->holed)
		v->hole_from = from;
	v->holed = true;
	vcpu_span_close(v, from, sink);
	vcpu_wait_begin(v, from, VCPU_UNKNOWN, pcpu);
	v->open.presumed = true;
	v->open.presumed_state = VCPU_RUNNABLE;
	vcpu_span_close(v, until, sink);
	vcpu_wait_begin(v, until, VCPU_RUNNABLE, pcpu);
}

void vcpu_turn_over(struct vcpu *v, struct host_ns t, uint16_t pcpu, const struct vcpu_sink *sink)
{
	bool unbroken = v->unbroken.ns >= t.ns, turn;
	unsigned i = 0;

	if (!v->doubted || v->n_doubts > VCPU_DOUBTS)
		return;
	while (i < v->n_doubts && v->doubts[i].pcpu != pcpu)
		i++;
	if (i == v->n_doubts)
		return;
	turn = turn_possible(v, &v->doubts[i]) && !unbroken;
	/* For a thread that sleeps it stays possible. */
	if (turn && v->state != THREAD_READY)
		return;
	v->doubts[i] = v->doubts[--v->n_doubts];
	if (v->state != THREAD_READY)
		return;
	if (turn && v->n_doubts) {
		v->doubted = false;
		wait_lose(v, v->doubt_from, sink);
		if (v->doubt_over)
			vcpu_sure(v, later(v->doubt_until, v->open.begin));
		return;
	}
	if (turn)
		hole(v, v->doubt_from, t, sink);
	/* Only a turn moves who waits for a CPU. */
	if (!v->n_doubts)
		v->doubted = false;
	for (i = 0, v->doubt_from = t; i < v->n_doubts; i++) {
		if (v->doubts[i].from.ns < v->open.begin.ns)
			v->doubts[i].from = v->open.begin;
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
