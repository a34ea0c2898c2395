/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Storms: many short waits of a vCPU thread, each shorter than the threshold, for example a quota
 * of a tenth of a CPU per 100 ms, or swap at 5 ms a page. A window adds them up. It lasts at most 1
 * s, and only as long as the waits are at least half of it. It ends with the last wait.
 *
 * With the guest side, a task's run interval adds up the waits that lie in it, and no time may be
 * reported twice. An interval in which the host took the threshold is heavy: it is expected to be
 * reported. So no window crosses its edges, and a window inside it is reported only if the interval
 * is not. A window continues across other intervals; it is dropped if it overlaps an interval that
 * is reported for another reason.
 *
 * The interval in which a wait lies may become heavy later. Until this is known there are three
 * windows: `storm` includes the wait, `older` ends before it, `newer` begins with it.
 */
#include "host-collector/analyze/stall/stall_internal.h"

#include <string.h>

#define STORM_WINDOW_NS 1000000000ll
/* A wait shorter than this is no piece, as most exits are. */
#define STORM_PIECE_NS 50000ll

/* The part of the host's time that the vCPU waited for. The handling of exits is no wait, and
 * taking turns with other tasks on the pCPU is fair up to the time that the vCPU ran itself. */
static int64_t waited_ns(const struct stall_facts *f)
{
	return facts_denied_in_pieces(f) - f->state_ns[VCPU_KVM] - f->state_ns[VCPU_VMM];
}

static void window_tell(struct stall_detector *d, const struct stall_vm *v,
			const struct stall_track *k, struct stall_facts *f)
{
	f->kind = GUEST_CPU_UNKNOWN;
	f->than_ns = d->options.than_ns;
	f->err_ns = stall_unproven(d, k) ? UINT64_MAX : 0; /* its edges are the host's own */
	stall_tell(d, v, f);
}

/* A window that begins with the chain that is over. */
static void window_begin(struct stall_window *w, const struct stall_track *k,
			 struct host_ns stretch)
{
	w->facts = w->told = k->chain;
	w->facts.end.ns = INT64_MAX;
	w->stretch = stretch;
	w->pieces = 1;
	w->open = true;
}

/* Returns true if the run interval that began then has not ended, or is not yet reported. */
static bool stretch_awaited(const struct stall_track *k, struct host_ns begin)
{
	if (k->task_known && k->stretch.begin.ns == begin.ns)
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

/* A task's, by which the guest's side adds up times of the host's. */
static bool has_open_stretch(const struct stall_detector *d, const struct stall_track *k)
{
	return k->task_known && k->stretch.kind == GUEST_CPU_TASK && !stall_unproven(d, k) &&
	       !model_guest_cpu_offline(d->model, k->vm, k->cpu);
}

/* Returns the begin of the newest run interval that overlaps the window and may be reported; 0:
 * none. */
static struct host_ns newest_stretch(const struct stall_detector *d, const struct stall_track *k,
				     const struct stall_window *w)
{
	const struct host_ns none = {0};

	if (w->stretch.ns)
		return w->stretch;
	if (has_open_stretch(d, k) && k->stretch.begin.ns < w->told.end.ns)
		return k->stretch.begin;
	for (unsigned i = k->n_pending; i-- > 0 && !stall_unproven(d, k);) {
		if (k->pending[i].begin.ns < w->told.end.ns &&
		    k->pending[i].end.ns > w->told.begin.ns)
			return k->pending[i].begin;
	}
	return none;
}

static void window_close(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
			 struct stall_window *w)
{
	struct host_ns stretch = newest_stretch(d, k, w);

	if (!w->open)
		return;
	w->open = false;
	if (w->pieces < 2 || waited_ns(&w->told) < d->options.than_ns)
		return;
	w->told.n_pieces = w->pieces;
	if (!stretch.ns || !stretch_awaited(k, stretch)) {
		window_tell(d, v, k, &w->told);
		return;
	}
	/* A run interval that contains more of them is reported for certain. */
	if (k->n_claimed == STALL_CLAIMED_MAX)
		claimed_remove(k, 0);
	k->claimed[k->n_claimed++] = (struct stall_claimed){w->told, stretch};
}

static bool is_heavy(const struct stall_detector *d, const struct stall_facts *stretch)
{
	return facts_denied_in_pieces(stretch) >= d->options.than_ns;
}

/* Returns the begin of the heavy run interval in which a chain of waits ended at `t`, or 0. If an
 * interval may still become heavy, sets *may to its begin. */
static struct host_ns stretch_of(const struct stall_detector *d, const struct stall_track *k,
				 struct host_ns t, struct host_ns *may)
{
	const struct stall_facts *in = NULL;
	const struct host_ns none = {0};

	*may = none;
	if (has_open_stretch(d, k) && t.ns > k->stretch.begin.ns)
		in = &k->stretch;
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
	struct host_ns may, stretch;

	if (!k->newer.open)
		return;
	stretch = stretch_of(d, k, k->newer.told.end, &may);
	if (stretch.ns == k->newer.stretch.ns) {
		window_close(d, v, k, &k->older);
		k->storm = k->newer;
	}
	if (may.ns != k->newer.stretch.ns)
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

/* False: the window must end before it. */
static bool window_add(struct stall_window *w, const struct stall_track *k)
{
	struct stall_facts next;

	if (!w->open || window_ends(w, k, &next))
		return false;
	w->told = next;
	w->pieces++;
	return true;
}

void stall_storm_piece(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k)
{
	struct host_ns may, stretch;
	bool added;

	if (waited_ns(&k->chain) < STORM_PIECE_NS)
		return;
	if (facts_duration(&k->chain) >= d->options.than_ns) {
		windows_close(d, v, k); /* this one is reported by itself */
		return;
	}
	newer_resolve(d, v, k);
	stretch = stretch_of(d, k, k->chain.end, &may);
	if (k->storm.open && stretch.ns != k->storm.stretch.ns)
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
	window_begin(&k->storm, k, stretch);
	if (may.ns) {
		k->older.open = false;
		window_begin(&k->newer, k, may);
	}
}

static bool overlaps(const struct stall_facts *a, const struct stall_facts *b)
{
	return a->begin.ns < b->end.ns && b->begin.ns < a->end.ns;
}

static void window_drop(struct stall_window *w, const struct stall_facts *told)
{
	if (w->open && overlaps(&w->told, told))
		w->open = false;
}

/* Reports the windows that lie in run intervals without a report of their own. `told` is the run
 * interval that now gets a report, or NULL. */
void stall_storm_stretch(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
			 const struct stall_facts *told)
{
	const bool claims = told && told->denied && told->kind != GUEST_CPU_UNKNOWN;

	newer_resolve(d, v, k);
	if (claims) {
		window_drop(&k->storm, told);
		window_drop(&k->older, told);
		window_drop(&k->newer, told);
	}
	for (unsigned i = 0; i < k->n_claimed;) {
		struct stall_claimed c = k->claimed[i];

		if (claims && overlaps(&c.facts, told)) {
			claimed_remove(k, i);
		} else if (stretch_awaited(k, c.stretch)) {
			i++;
		} else {
			claimed_remove(k, i);
			window_tell(d, v, k, &c.facts);
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
		stall_storm_stretch(d, v, k, NULL);
	if (!k->storm.open)
		return;
	window_span(&k->storm, span);
	window_span(&k->newer, span);
	/* Nothing for so long that no later piece can make half of it. */
	if (!vcpu_span_denies(span) &&
	    span->end.ns - k->storm.facts.begin.ns > STORM_WINDOW_NS + d->options.than_ns)
		windows_close(d, v, k);
}

void stall_storm_finish(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k)
{
	windows_close(d, v, k);
}
