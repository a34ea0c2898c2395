/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns the hints that lie in an interval into its facts. */
#include <stdlib.h>

#include "host-collector/analyze/stall/hints_internal.h"
#include "host-collector/util/intervals.h"
#include "host-collector/analyze/stall/spins.h"

struct view { /* one vCPU's hints, in one run interval */
	const struct stall_facts *f;
	uint32_t vm;
	struct interval within;
};

static const struct hint *hint_at(const struct vcpu_hints *v, uint64_t i)
{
	return &v->ring[i % HINTS_KEPT];
}

static uint64_t hint_first(const struct vcpu_hints *v)
{
	return v->n > HINTS_KEPT ? v->n - HINTS_KEPT : 0;
}

static void add_hint(struct intervals *s, const struct view *view, const struct hint *hint)
{
	intervals_add(s, hint->begin.ns, hint->end.ns, view->within);
}

/* Collects all hints of this kind (about `what`, unless it is NULL) that lie in the run
 * interval. */
static void collect(const struct view *view, const struct vcpu_hints *v, enum hint_kind kind,
		    const uint64_t *what, struct intervals *out)
{
	for (uint64_t i = hint_first(v); i < v->n; i++) {
		const struct hint *hint = hint_at(v, i);

		if (hint->kind == kind && (!what || hint->what == *what))
			add_hint(out, view, hint);
	}
}

/* Collects the times for which the host kept this vCPU from the guest in the run interval.
 * *longest: the longest of them, which is named as the reason. */
static void collect_kept(const struct view *view, const struct model *m, const struct vcpu_hints *v,
			 uint32_t vcpu, struct intervals *out, struct hint *longest)
{
	struct hint now = v->kept;
	struct vcpu_span open;
	struct host_ns delivered;

	*longest = (struct hint){0};
	for (uint64_t i = hint_first(v); i <= v->n; i++) {
		const struct hint *hint = i < v->n ? hint_at(v, i) : &now;
		size_t n = out->n;

		if (hint->kind != HINT_KEPT || (i == v->n && !now.longest_ns))
			continue;
		add_hint(out, view, hint);
		if ((out->n != n || i == v->n) && hint->end.ns > view->within.begin &&
		    hint->begin.ns < view->within.end && hint->longest_ns > longest->longest_ns)
			*longest = *hint;
	}
	if (model_vcpu_delivered(m, view->vm, vcpu, &delivered) ||
	    model_vcpu_current(m, view->vm, vcpu, &open) || delivered.ns != open.begin.ns ||
	    !vcpu_state_denies(open.state) || open.end.ns - open.begin.ns < hint_min_ns)
		return;
	intervals_add(out, open.begin.ns, open.end.ns, view->within);
	if (open.end.ns - open.begin.ns <= longest->longest_ns)
		return;
	*longest = (struct hint){.kind = HINT_KEPT,
				 .state = open.state,
				 .begin = open.begin,
				 .end = open.end,
				 .longest_ns = open.end.ns - open.begin.ns};
	longest->pid = hint_keeper(&open, &longest->keeper);
}

/* Collects the times for which the state of this vCPU is unknown, or not known yet. */
static void collect_unseen(const struct view *view, const struct model *m,
			   const struct vcpu_hints *v, uint32_t vcpu, struct intervals *out)
{
	struct vcpu_span open;
	struct host_ns delivered;

	collect(view, v, HINT_UNSEEN, NULL, out);
	if (model_vcpu_delivered(m, view->f->vm, vcpu, &delivered) ||
	    model_vcpu_current(m, view->f->vm, vcpu, &open))
		return;
	if (open.state == VCPU_UNKNOWN || delivered.ns != open.begin.ns)
		intervals_add(out, delivered.ns, view->within.end, view->within);
}

/* Collects the times between two successive samples of this kind. */
static void collect_sampled(const struct view *view, enum spin_kind kind, struct intervals *out)
{
	const struct stall_facts *f = view->f;

	for (unsigned i = 1; i < f->n_samples; i++) {
		if (f->samples[i].kind == kind && f->samples[i - 1].kind == kind)
			intervals_add(out, f->samples[i - 1].t.ns, f->samples[i].t.ns,
				      view->within);
	}
}

/* Returns true if samples, not exits, show where the task waits. */
static bool by_samples(const struct hints *h, const struct stall_facts *f)
{
	return f->sampled.spinning && !h->spins_exit;
}

/* Collects the times in which the vCPU spun for a lock, or halted for one, as paravirtual locks do.
 */
static void collect_waits(const struct view *view, const struct vcpu_hints *v,
			  struct intervals *out)
{
	const struct stall_facts *f = view->f;

	if (v) {
		struct hint now = hint_of_run(&v->spin, HINT_SPIN);

		collect(view, v, HINT_SPIN, NULL, out);
		/* the spin goes on after its last exit */
		now.end.ns += hint_spin_gap_ns(&v->spin);
		if (v->spin.count > 1)
			add_hint(out, view, &now);
	}
	if (!facts_halts_wait(f))
		return;
	for (unsigned i = 0; i < f->n_halts; i++)
		intervals_add(out, f->halts[i].begin.ns, f->halts[i].end.ns, view->within);
}

static int64_t common_ns(const struct intervals *a, const struct intervals *b)
{
	struct intervals both;

	intervals_common(a, b, &both);
	return intervals_length(&both);
}

static int64_t halted_ns(const struct view *view, const struct intervals *s)
{
	struct intervals halts = {0};

	int64_t ns;

	for (unsigned i = 0; i < view->f->n_halts; i++)
		intervals_add(&halts, view->f->halts[i].begin.ns, view->f->halts[i].end.ns,
			      view->within);
	ns = common_ns(s, &halts);
	/* A halt that unknown time interrupts counts as one halt, but the unknown time does not
	 * count. */
	return ns < view->f->state_ns[VCPU_HALTED] ? ns : view->f->state_ns[VCPU_HALTED];
}

static struct facts_peer peer_of(uint32_t vcpu, const struct hint *kept)
{
	return (struct facts_peer){.vcpu = vcpu,
				   .state = kept->state,
				   .pid = kept->pid,
				   .keeper = kept->keeper,
				   .known = true};
}

/* Collects the calls of this vCPU to `to`, with or without answer. */
static void collect_calls(const struct hints *h, const struct view *view, uint32_t vcpu,
			  uint32_t to, struct intervals *out)
{
	const uint64_t what = to;
	const struct vcpu_hints *target = h->vcpus[to];

	if (h->vcpus[vcpu])
		collect(view, h->vcpus[vcpu], HINT_CALL, &what, out);
	for (size_t k = 0; k < CALLERS; k++) {
		if (target->calls[k].open && target->calls[k].caller == vcpu)
			intervals_add(out, target->calls[k].since.ns, view->within.end,
				      view->within);
	}
}

/* If spins cause no exits, the owner of a lock may run for this long before it releases the lock.
 */
static const int64_t release_late_ns = 10000000;

/* Returns true if a wait of `denied` ns looks like a wait for the other vCPU. apart: time from that
 * vCPU's return to the end of the wait. ns: the part of the wait in which that vCPU was absent. */
static bool ended_by(int64_t apart, int64_t ns, int64_t denied, int64_t slack, bool spins_unseen)
{
	if (apart >= -slack && apart <= slack)
		return ns >= denied / 2;
	return spins_unseen && apart >= -slack && apart <= slack + release_late_ns &&
	       ns >= denied / 10 * 8;
}

/*
 * Used if nothing shows what the guest waited for: its wait in guest mode ended when another vCPU
 * came back to the guest. By chance this happens to one wait in a hundred.
 */
static void coincidence(const struct hints *h, const struct view *view, uint32_t peer,
			const struct intervals *own_kept, const struct intervals *kept,
			const struct hint *longest, struct facts_waits *out)
{
	const struct stall_facts *f = view->f;
	int64_t denied = facts_denied_by_guest(f), slack = hint_min_ns + (int64_t)f->err_ns;
	struct host_ns end = facts_denial_end(f);
	int64_t apart = end.ns - longest->end.ns, ns;
	struct intervals wait = {0}, late = {0};

	/* In time that the host took from this vCPU since then, it did not wait for another vCPU.
	 */
	intervals_add(&late, longest->end.ns, end.ns, view->within);
	apart -= common_ns(&late, own_kept);
	intervals_add(&wait, end.ns - denied, end.ns, view->within);
	ns = common_ns(&wait, kept);
	if (denied < f->than_ns || f->ongoing || !longest->longest_ns || f->sampled.computing ||
	    !ended_by(apart, ns, denied, slack, out->spins_unseen) || ns <= out->lock_ns)
		return;
	out->coincidence = true;
	if (h->vcpus[peer]->called.ns - longest->end.ns < slack &&
	    h->vcpus[peer]->called.ns - longest->end.ns > -slack) {
		out->call_ns = ns;
		out->call_target = peer_of(peer, longest);
	} else {
		out->lock_ns = ns;
		out->lock_owner = peer_of(peer, longest);
	}
}

static void longest_note(struct facts_waits *out, const struct intervals *waited)
{
	int64_t ns = intervals_longest(waited);

	out->longest_ns = ns > out->longest_ns ? ns : out->longest_ns;
}

/* Notes the CPU that the guest called, if it took longest to answer so far. */
static void called_note(const struct view *view, const struct model *m, uint32_t k, int64_t ns,
			struct facts_waits *out)
{
	uint16_t cpu;

	if (ns <= out->called_ns || model_guest_cpu_of_vcpu(m, view->f->vm, k, &cpu))
		return;
	out->called_ns = ns;
	out->called_cpu = cpu;
}

/* Finds how vCPU `k` of the same VM contributed to the run interval, if the host kept it from the
 * guest. waits: the times in which this vCPU waited. */
static void fill_peer(const struct hints *h, const struct model *m, const struct view *view,
		      const struct intervals *own_kept, const struct intervals *waits, uint32_t k,
		      struct facts_waits *out)
{
	struct intervals kept = {0}, calls = {0}, called = {0}, rest, both, unseen;
	struct hint longest;
	bool sampled = false;
	int64_t ns;

	collect_calls(h, view, view->f->vcpu, k, &calls);
	called_note(view, m, k, intervals_length(&calls), out);
	collect_kept(view, m, h->vcpus[k], k, &kept, &longest);
	unseen = kept;
	collect_unseen(view, m, h->vcpus[k], k, &unseen);
	ns = intervals_length(&unseen);
	if (ns > out->peer_kept_ns)
		out->peer_kept_ns = ns;
	if (!kept.n)
		return;
	ns = intervals_length(&kept);
	if (ns > out->peer_surely_kept_ns) {
		out->peer_surely_kept_ns = ns;
		out->peer_kept = peer_of(k, &longest);
	}
	if (!calls.n && by_samples(h, view->f)) {
		collect_sampled(view, SPIN_CALL, &calls);
		sampled = calls.n;
	}
	intervals_without(&calls, own_kept, &called);
	intervals_common(&called, &kept, &both);
	ns = intervals_length(&both);
	if (ns > out->call_ns) {
		out->call_ns = ns;
		longest_note(out, &both);
		out->call_target = peer_of(k, &longest);
		out->sampled |= sampled;
		out->called_before =
			facts_is_interrupt(view->f) && calls.at[0].begin <= view->within.begin;
	}
	intervals_without(waits, &called, &rest);
	intervals_common(&rest, &kept, &both);
	ns = intervals_length(&both);
	if (ns > out->lock_ns) {
		out->lock_ns = ns;
		longest_note(out, &both);
		out->lock_halted_ns = halted_ns(view, &both);
		/* A halt needs no sample as proof. */
		out->sampled |= by_samples(h, view->f) && out->lock_halted_ns * 2 < ns;
		out->lock_owner = peer_of(k, &longest);
	}
}

static void peer_coincidence(const struct hints *h, const struct model *m, const struct view *view,
			     const struct intervals *own_kept, uint32_t k, struct facts_waits *out)
{
	struct intervals kept = {0}, alone;
	struct hint longest;

	collect_kept(view, m, h->vcpus[k], k, &kept, &longest);
	/* While the host kept this vCPU from the guest, too, the guest did not wait for the other.
	 */
	intervals_without(&kept, own_kept, &alone);
	if (alone.n)
		coincidence(h, view, k, own_kept, &alone, &longest, out);
}

/* Runs at every tick for every open run interval. A set of intervals takes 2 KiB. */
static void fill_peers(const struct hints *h, const struct model *m, const struct view *view,
		       const struct intervals *own_kept, struct facts_waits *out)
{
	uint32_t vcpu = view->f->vcpu;
	struct intervals all = {0}, waits = {0};

	collect_waits(view, h->vcpus[vcpu], &all);
	if (by_samples(h, view->f))
		collect_sampled(view, SPIN_LOCK, &all);
	intervals_without(&all, own_kept, &waits);
	for (uint32_t k = 0; k < h->vcpus_end; k++) {
		if (h->vcpus[k] && k != vcpu)
			fill_peer(h, m, view, own_kept, &waits, k, out);
	}
	/* If the waits that were seen explain most of the time, no coincidence is needed. Exits may
	 * show only a part of a wait. */
	if ((out->call_ns + out->lock_ns) * 2 > facts_denied_by_guest(view->f))
		return;
	for (uint32_t k = 0; k < h->vcpus_end; k++) {
		if (h->vcpus[k] && k != vcpu)
			peer_coincidence(h, m, view, own_kept, k, out);
	}
}

static void fill_poll(const struct view *view, const struct vcpu_hints *v,
		      const struct intervals *own_kept, struct facts_waits *out)
{
	for (uint64_t i = hint_first(v); i < v->n + REGISTERS; i++) {
		const struct run *r = i < v->n ? NULL : &v->registers[i - v->n];
		struct hint hint = r ? hint_of_run(r, HINT_POLL) : *hint_at(v, i);
		struct intervals polled = {0}, left;
		int64_t ns;

		if (hint.kind != HINT_POLL || (r && !hint_run_polls(r)))
			continue;
		add_hint(&polled, view, &hint);
		intervals_without(&polled, own_kept, &left);
		ns = intervals_length(&left);
		if (ns <= out->poll_ns)
			continue;
		out->poll_ns = ns;
		out->polled = hint.what & ~(1ull << HINT_PORT_BIT);
		out->polled_port = hint.what >> HINT_PORT_BIT;
		out->polls = hint.count;
	}
}

static void fill_nested(const struct view *view, const struct vcpu_hints *v,
			const struct intervals *own_kept, struct facts_waits *out)
{
	struct intervals nested = {0}, left;

	collect(view, v, HINT_NESTED, NULL, &nested);
	if (v->in_guest_of_its_own)
		intervals_add(&nested, v->nested.begin.ns, view->within.end, view->within);
	intervals_without(&nested, own_kept, &left);
	out->nested_ns = intervals_length(&left);
}

/* A loss this long before the interval counts, because it may include the event that began a wait.
 */
static const int64_t lossy_before_ns = 10000000;

static bool lossy(const struct hints *h, const struct stall_facts *f)
{
	for (uint64_t i = 0; i < h->n_lost && i < LOSSES; i++) {
		if (h->lost[i].last.ns >= f->begin.ns - lossy_before_ns &&
		    h->lost[i].first.ns <= f->end.ns)
			return true;
	}
	return false;
}

/* Sets *device to the device of the last request that the vCPU's thread sent. Returns false if that
 * was neither in the interval nor just before. */
static bool fill_block(const struct vcpu_hints *v, const struct stall_facts *f, uint32_t *device)
{
	const int64_t just_before_ns = 100000000;

	*device = v->block_device;
	return v->block_issued.ns && v->block_issued.ns >= f->begin.ns - just_before_ns &&
	       v->block_issued.ns <= f->end.ns;
}

void hints_fill(const struct hints *h, const struct model *m, struct stall_facts *f)
{
	const struct view view = {f, f->vm, {f->begin.ns, f->end.ns}};
	struct facts_waits *w = &f->waits;
	struct intervals own_kept = {0};
	struct hint longest;

	*w = (struct facts_waits){.lossy = lossy(h, f), .spins_unseen = !h->spins_exit};
	shown_events_fill(&h->shown, f);
	if (!f->vcpu_known || f->vcpu >= VS_CPUS_MAX)
		return;
	if (h->vcpus[f->vcpu]) {
		collect_kept(&view, m, h->vcpus[f->vcpu], f->vcpu, &own_kept, &longest);
		fill_poll(&view, h->vcpus[f->vcpu], &own_kept, w);
		fill_nested(&view, h->vcpus[f->vcpu], &own_kept, w);
		f->block_device_known = fill_block(h->vcpus[f->vcpu], f, &f->block_device);
	}
	fill_peers(h, m, &view, &own_kept, w);
}

int64_t hints_kept_ns(const struct hints *h, const struct model *m, uint32_t vm, uint32_t vcpu,
		      struct host_ns begin, struct host_ns end)
{
	const struct view view = {NULL, vm, {begin.ns, end.ns}};
	struct intervals kept = {0};
	struct hint longest;

	if (vcpu < VS_CPUS_MAX && h->vcpus[vcpu])
		collect_kept(&view, m, h->vcpus[vcpu], vcpu, &kept, &longest);
	return intervals_length(&kept);
}
