/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two CPUs of one guest have long run intervals at the same time. One may spin for a lock that the
 * other holds, or for its answer to an IPI. The events of both look the same. The wait cannot begin
 * before the other CPU's interval, and both intervals end together.
 */
#include "host-collector/analyze/stall/stall_internal.h"

/* The longest time from the release of a lock, or an answer, to the switches by which both tasks
 * leave their CPUs. */
static const int64_t together_ns = 10000000;
/* For a CPU whose task denied nothing the limit is smaller: by chance, some task often leaves its
 * CPU at about that time. */
static const int64_t together_by_chance_ns = 1000000;
/* On a slow host, a waiter may leave its CPU later than that. If both ends are this close, and
 * within a tenth of the wait, the other CPU may be what it waited for. */
static const int64_t near_ns = 100000000;
/* If two denials begin closer together than this, their order is unknown. */
static const int64_t first_ns = 10000000;

/* The part of the run interval in which the guest itself denied something. */
struct wait {
	int64_t begin, end, halted_ns;
	bool ticks_stopped;
};

static int64_t common_ns(const struct wait *w, const struct stall_recent *r)
{
	int64_t begin = w->begin > r->begin.ns ? w->begin : r->begin.ns;
	int64_t end = w->end < r->end.ns ? w->end : r->end.ns;

	return end > begin ? end - begin : 0;
}

static bool denies_nothing(const struct stall_recent *r)
{
	return r->denial.ns == r->end.ns;
}

/* Returns true if the ends are at most a tenth of the wait apart, and at most `limit` ns. away_ns:
 * time in between for which the host kept the waiting vCPU from the guest. */
static bool ends_within(const struct wait *w, const struct stall_recent *r, int64_t away_ns,
			int64_t limit)
{
	int64_t apart = w->end - r->end.ns - away_ns, most = (w->end - w->begin) / 10;

	if (most > limit)
		most = limit;
	return apart <= most && apart >= -most;
}

/* Returns true if both end together. spinning: samples show that it waits, so a distance of a tenth
 * of its wait is accepted. */
static bool ends_with(const struct wait *w, const struct stall_recent *r, int64_t away_ns,
		      bool spinning)
{
	int64_t limit = denies_nothing(r) ? together_by_chance_ns : together_ns;

	return ends_within(w, r, away_ns, spinning ? INT64_MAX : limit);
}

/* Returns true if the other CPU denied something and ended so close that this one may have waited
 * for it. */
static bool ends_near(const struct wait *w, const struct stall_recent *r, int64_t away_ns)
{
	return !denies_nothing(r) && ends_within(w, r, away_ns, near_ns);
}

/* Returns true if this CPU began to deny something before the other. *unsure: the order is unknown.
 */
static bool was_first(const struct wait *w, const struct stall_recent *r, bool *unsure)
{
	int64_t before = w->begin - r->denial.ns;

	*unsure = false;
	if (r->ticks_stopped != w->ticks_stopped)
		return w->ticks_stopped;
	*unsure = denies_nothing(r) || (before < first_ns && before > -first_ns);
	return before < 0 && !*unsure;
}

static bool better(const struct facts_guest_peer *a, const struct facts_guest_peer *b)
{
	if (a->called != b->called)
		return a->called;
	if (a->ended != b->ended)
		return a->ended;
	if (a->unsure != b->unsure)
		return b->unsure;
	return a->ns > b->ns;
}

/* Replaces *best if this CPU's run interval is a better explanation of the wait. on: its interval
 * has not ended. */
static void consider(const struct stall_facts *f, const struct wait *w, uint16_t cpu,
		     const struct stall_recent *r, int64_t away_ns, bool on,
		     struct facts_guest_peer *best)
{
	int64_t wait_ns = w->end - w->begin;
	struct facts_guest_peer peer = {
		.known = true,
		.called = f->waits.called_cpu == cpu && f->waits.called_ns * 10 >= wait_ns * 8,
		.ended = on ? f->ongoing : ends_with(w, r, away_ns, f->sampled.spinning),
		.ticks_stopped = r->ticks_stopped,
		.cpu = cpu,
		.kind = r->kind,
		.number = r->number,
		.vector = r->vector,
		.pid = r->pid,
		.ns = common_ns(w, r),
		.halted_ns = w->halted_ns,
	};
	bool proven = peer.called || f->sampled.spinning;

	if (r->idle || peer.ns * 10 < wait_ns * 8 ||
	    !(peer.ended || proven || (!on && ends_near(w, r, away_ns))))
		return;
	if (was_first(w, r, &peer.unsure) && !proven)
		return;
	peer.unsure = !peer.called && (peer.unsure || !peer.ended);
	if (!best->known || better(&peer, best))
		*best = peer;
}

/* The run interval of this CPU since its last switch, as if it had ended. */
static struct stall_recent open_period(const struct stall_detector *d, const struct stall_vm *v,
				       const struct stall_track *k)
{
	struct stall_facts f = k->period;

	stall_period_seal(d, v, k, &f, v->guest_last);
	return stall_recent_of(&f);
}

/* Removes the mark of stopped ticks if its vCPU did not run: then stopped ticks do not show that
 * interrupts were off. */
static void ticks_excuse(const struct stall_detector *d, const struct stall_vm *v,
			 const struct stall_track *k, const struct wait *w, struct stall_recent *r)
{
	uint32_t vcpu;

	if (r->ticks_stopped && !model_vcpu_of_guest_cpu(d->model, v->vm, k->cpu, &vcpu) &&
	    hints_kept_ns(v->hints, d->model, v->vm, vcpu, (struct host_ns){w->begin},
			  (struct host_ns){w->end}) *
			    2 >
		    w->end - w->begin)
		r->ticks_stopped = false;
}

static void consider_track(const struct stall_detector *d, const struct stall_vm *v,
			   const struct stall_facts *f, const struct wait *w,
			   const struct stall_track *k, struct facts_guest_peer *best)
{
	unsigned n = k->n_recent < STALL_RECENT_MAX ? k->n_recent : STALL_RECENT_MAX;
	struct stall_recent r;
	int64_t away_ns;

	for (unsigned i = 0; i < n; i++) {
		r = k->recent[i];
		if (!common_ns(w, &r))
			continue;
		ticks_excuse(d, v, k, w, &r);
		away_ns = r.end.ns < w->end && f->vcpu_known
				  ? hints_kept_ns(v->hints, d->model, v->vm, f->vcpu, r.end,
						  (struct host_ns){w->end})
				  : 0;
		consider(f, w, k->cpu, &r, away_ns, false, best);
	}
	if (!k->task_known || k->period.kind != GUEST_CPU_TASK || k->period.begin.ns > w->begin)
		return;
	r = open_period(d, v, k);
	ticks_excuse(d, v, k, w, &r);
	consider(f, w, k->cpu, &r, 0, true, best);
}

void stall_peer_fill(const struct stall_detector *d, const struct stall_vm *v,
		     struct stall_facts *f)
{
	const int64_t end = facts_denial_end(f).ns, all = facts_denial_ns(f);
	struct facts_guest_peer *best = &f->guest_peer;
	struct wait w = {.end = end, .ticks_stopped = facts_ticks_stopped(f)};
	int64_t own;

	*best = (struct facts_guest_peer){0};
	if (f->kind == GUEST_CPU_IDLE || f->kind == GUEST_CPU_UNKNOWN || f->lost.alone ||
	    f->clock_step_ns || f->sampled.computing)
		return;
	/* A paravirtual lock halts the vCPU although it has a task to run. If events are missing,
	 * the halt may be that of the idle task. */
	if (facts_halts_wait(f) && f->data.kvm_events && !f->n_lost && !f->waits.lossy)
		w.halted_ns = f->state_ns[VCPU_HALTED] - f->waits.lock_halted_ns;
	own = facts_denied_by_guest(f) + w.halted_ns;
	w.begin = end - (own < all ? own : all);
	if (w.end - w.begin < f->than_ns)
		return;
	for (size_t c = 0; c < v->tracks_end; c++) {
		if (v->tracks[c] && v->tracks[c]->cpu != f->cpu)
			consider_track(d, v, f, &w, v->tracks[c], best);
	}
}

bool stall_peer_settled(const struct stall_vm *v, const struct stall_facts *f, struct host_ns now)
{
	if (now.ns - f->end.ns > together_ns)
		return true;
	for (size_t c = 0; c < v->tracks_end; c++) {
		const struct stall_track *k = v->tracks[c];

		if (k && k->cpu != f->cpu && k->task_known && k->period.kind == GUEST_CPU_TASK &&
		    f->end.ns - k->period.begin.ns >= f->than_ns)
			return false;
	}
	return true;
}
