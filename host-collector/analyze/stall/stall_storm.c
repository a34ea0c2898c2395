/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Storms: many short waits of a vCPU thread, each shorter than the threshold, for example a quota
 * of a tenth of a CPU per 100 ms, or swap at 5 ms a page. A window adds them up. It lasts at most 1
 * s, and only as long as the waits are at least half of it. It ends with the last wait.
 *
 * With the guest side, a task's run interval adds up the waits that lie in it, and no time may be
 * reported twice. An interval in which the host took the threshold is heavy: it is expected to be
 * reported. So no window crosses its edges, and a window inside it is reported only if the interval
 * is not. A window continues across other intervals. If one of these is reported for another
 * reason, the part of the window before it is reported, and the rest is dropped.
 *
 * The interval in which a wait lies may become heavy later. Until this is known there are three
 * windows: `storm` includes the wait, `older` ends before it, `newer` begins with it.
 */
#include "host-collector/analyze/stall/stall_internal.h"

#include <string.h>

#define STORM_WINDOW_NS 1000000000ll

/* Returns the time in which the vCPU waited. The handling of exits is no wait. Waiting in turn with
 * other tasks on the pCPU is fair, up to the time that the vCPU ran itself. */
static int64_t waited_ns(const struct stall_facts *f)
{
	return facts_denied_in_pieces(f) - f->state_ns[VCPU_KVM] - f->state_ns[VCPU_VMM];
}

static void window_emit(struct stall_detector *d, const struct stall_vm *v,
			const struct stall_track *k, struct stall_facts *f)
{
	f->kind = GUEST_CPU_UNKNOWN;
	f->than_ns = d->options.than_ns;
	f->err_ns = stall_unproven(d, k) ? UINT64_MAX : 0; /* only host times are involved */
	stall_emit(d, v, f);
}

/* Begins a window with the chain that has just ended. */
static void window_begin(struct stall_window *w, const struct stall_track *k, struct host_ns period)
{
	w->facts = w->reported = k->chain;
	w->facts.end.ns = INT64_MAX;
	w->period = period;
	w->pieces = 1;
	w->open = true;
}

/* Returns true if the run interval with this begin has not ended, or is not yet reported. */
static bool period_awaited(const struct stall_track *k, struct host_ns begin)
{
	if (k->task_known && k->period.begin.ns == begin.ns)
		return true;
	for (unsigned i = 0; i < k->n_pending; i++) {
		if (k->pending[i].begin.ns == begin.ns)
			return true;
	}
	return false;
}

static void claimed_remove(struct stall_track *k, unsigned at)
{
	k->n_claimed--;
	memmove(&k->claimed[at], &k->claimed[at + 1], (k->n_claimed - at) * sizeof(k->claimed[0]));
}

/* Returns true if a task's run interval is open, to which the guest side adds the host's times. */
static bool has_open_period(const struct stall_detector *d, const struct stall_track *k)
{
	return k->task_known && k->period.kind == GUEST_CPU_TASK && !stall_unproven(d, k) &&
	       !model_guest_cpu_offline(d->model, k->vm, k->cpu);
}

/* Returns the begin of the newest run interval that overlaps the window and may be reported; 0:
 * none. */
static struct host_ns newest_period(const struct stall_detector *d, const struct stall_track *k,
				    const struct stall_window *w)
{
	const struct host_ns none = {0};

	if (w->period.ns)
		return w->period;
	if (has_open_period(d, k) && k->period.begin.ns < w->reported.end.ns)
		return k->period.begin;
	for (unsigned i = k->n_pending; i-- > 0 && !stall_unproven(d, k);) {
		if (k->pending[i].begin.ns < w->reported.end.ns &&
		    k->pending[i].end.ns > w->reported.begin.ns)
			return k->pending[i].begin;
	}
	return none;
}

static void window_close(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
			 struct stall_window *w)
{
	struct host_ns period = newest_period(d, k, w);

	if (!w->open)
		return;
	w->open = false;
	if (w->pieces < 2 || waited_ns(&w->reported) < d->options.than_ns)
		return;
	w->reported.n_pieces = w->pieces;
	if (!period.ns || !period_awaited(k, period)) {
		window_emit(d, v, k, &w->reported);
		return;
	}
	/* a run interval with more windows than that will be reported */
	if (k->n_claimed == STALL_CLAIMED_MAX)
		claimed_remove(k, 0);
	k->claimed[k->n_claimed++] = (struct stall_claimed){w->reported, period};
}

static bool is_heavy(const struct stall_detector *d, const struct stall_facts *period)
{
	return facts_denied_in_pieces(period) >= d->options.than_ns;
}

/* Returns the begin of the heavy run interval in which a chain of waits ended at `t`, or 0. If an
 * interval may still become heavy, sets *may to its begin. */
static struct host_ns period_of(const struct stall_detector *d, const struct stall_track *k,
				struct host_ns t, struct host_ns *may)
{
	const struct stall_facts *in = NULL;
	const struct host_ns none = {0};

	*may = none;
	if (has_open_period(d, k) && t.ns > k->period.begin.ns)
		in = &k->period;
	for (unsigned i = 0; !in && i < k->n_pending && !stall_unproven(d, k); i++) {
		if (t.ns > k->pending[i].begin.ns && t.ns <= k->pending[i].end.ns)
			in = &k->pending[i];
	}
	if (in && is_heavy(d, in))
		return in->begin;
	if (in)
		*may = in->begin;
	return none;
}

/* Checks whether the run interval in which `newer` begins has become heavy. If so, nothing
 * before it belongs to it. If it has ended without that, the two windows are joined. */
static void newer_resolve(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k)
{
	struct host_ns may, period;

	if (!k->newer.open)
		return;
	period = period_of(d, k, k->newer.reported.end, &may);
	if (period.ns == k->newer.period.ns) {
		window_close(d, v, k, &k->older);
		k->storm = k->newer;
	}
	if (may.ns != k->newer.period.ns)
		k->newer.open = k->older.open = false;
}

/* Ends the windows. A window in a run interval that may become heavy ends as separate parts. */
static void windows_close(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k)
{
	newer_resolve(d, v, k);
	if (k->newer.open) {
		window_close(d, v, k, &k->older);
		window_close(d, v, k, &k->newer);
		k->storm.open = false;
	} else {
		window_close(d, v, k, &k->storm);
	}
}

/* Returns true if the chain that has ended makes the window too long, or its share of waits too
 * small. */
static bool window_ends(const struct stall_window *w, const struct stall_track *k,
			struct stall_facts *next)
{
	*next = w->facts;
	facts_end(next, k->chain.end);
	return 2 * waited_ns(next) < facts_duration(next) || facts_duration(next) > STORM_WINDOW_NS;
}

/* Returns false if the window must end before this chain. */
static bool window_add(struct stall_window *w, const struct stall_track *k)
{
	struct stall_facts next;

	if (!w->open || window_ends(w, k, &next))
		return false;
	w->reported = next;
	w->pieces++;
	return true;
}

void stall_storm_piece(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k)
{
	struct host_ns may, period;
	bool added;

	if (waited_ns(&k->chain) < STALL_PIECE_NS)
		return;
	if (facts_duration(&k->chain) >= d->options.than_ns) {
		windows_close(d, v, k); /* this chain is reported by itself */
		return;
	}
	if (k->chain.begin.ns < k->storm_from.ns)
		return;
	newer_resolve(d, v, k);
	period = period_of(d, k, k->chain.end, &may);
	if (k->storm.open && period.ns != k->storm.period.ns)
		windows_close(d, v, k);
	if (may.ns && k->storm.open && !k->newer.open) {
		k->older = k->storm;
		window_begin(&k->newer, k, may);
		added = window_add(&k->storm, k);
	} else {
		added = window_add(&k->storm, k);
		if (added && k->newer.open && !window_add(&k->newer, k))
			window_begin(&k->newer, k, may);
	}
	if (added)
		return;
	windows_close(d, v, k);
	window_begin(&k->storm, k, period);
	if (may.ns) {
		k->older.open = false;
		window_begin(&k->newer, k, may);
	}
}

static bool overlaps(const struct stall_facts *a, const struct stall_facts *b)
{
	return a->begin.ns < b->end.ns && b->begin.ns < a->end.ns;
}

static void window_drop(struct stall_window *w, const struct stall_facts *reported)
{
	if (w->open && overlaps(&w->reported, reported))
		w->open = false;
}

/* Ends the windows where the run interval begins that is reported: what is before it is reported as
 * well, what overlaps it is dropped. The last wait in it may still be open here. */
static void period_claim(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
			 const struct stall_facts *reported)
{
	k->storm_from = reported->end;
	if (k->newer.open && k->newer.period.ns == reported->begin.ns) {
		window_close(d, v, k, &k->older);
		k->storm.open = k->newer.open = false;
	} else if (k->storm.open && k->storm.reported.end.ns <= reported->begin.ns) {
		windows_close(d, v, k);
	} else {
		window_drop(&k->storm, reported);
		window_drop(&k->older, reported);
		window_drop(&k->newer, reported);
	}
}

/* Reports the windows that lie in run intervals without a report of their own. `reported` is the
 * run interval that now gets a report, or NULL. */
void stall_storm_period(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
			const struct stall_facts *reported)
{
	const bool claims = reported && reported->denied && reported->kind != GUEST_CPU_UNKNOWN;

	newer_resolve(d, v, k);
	if (claims)
		period_claim(d, v, k, reported);
	for (unsigned i = 0; i < k->n_claimed;) {
		struct stall_claimed c = k->claimed[i];

		if (claims && overlaps(&c.facts, reported)) {
			claimed_remove(k, i);
		} else if (period_awaited(k, c.period)) {
			i++;
		} else {
			claimed_remove(k, i);
			window_emit(d, v, k, &c.facts);
		}
	}
}

static void window_span(struct stall_window *w, const struct vcpu_span *span)
{
	if (w->open)
		facts_vcpu_span(&w->facts, span);
}

void stall_storm_span(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
		      const struct vcpu_span *span)
{
	if (k->n_claimed)
		stall_storm_period(d, v, k, NULL);
	if (!k->storm.open)
		return;
	window_span(&k->storm, span);
	window_span(&k->newer, span);
	/* So long after the last wait, no later one can make up half of the window. */
	if (!vcpu_span_denies(span) &&
	    span->end.ns - k->storm.facts.begin.ns > STORM_WINDOW_NS + d->options.than_ns)
		windows_close(d, v, k);
}

void stall_storm_finish(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k)
{
	windows_close(d, v, k);
}
