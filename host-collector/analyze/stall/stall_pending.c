/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps intervals that have ended until the vCPUs' spans are delivered, then completes and reports
 * their facts. */
#include "host-collector/analyze/stall/stall_internal.h"

#include <stdlib.h>
#include <string.h>

enum { PENDING_MAX = 64 };

/* The model passes on held spans within MODEL_HOLD_NS after the end of the wait. A run interval
 * that ends within a longer wait is reported with what is known this long after it was queued. It
 * may have ended long before that: a run interval around a long interrupt is queued when the
 * interrupt has ended. */
#define PENDING_LIMIT_NS (5 * MODEL_HOLD_NS)

/* Counts the other tasks that waited for this CPU. Only the part of a wait inside the run interval
 * counts. */
static void waiters_count(const struct stall_vm *v, struct stall_facts *f)
{
	struct host_ns end = f->end;
	struct waiters_summary w;

	w = waiters_summarise(&v->waiters, f->cpu, f->begin, end, f->than_ns);
	f->waiter_pid = w.pid;
	f->waiter_ns = w.ns;
	f->n_waiters = w.count;
}

void stall_facts_complete(const struct stall_detector *d, const struct stall_vm *v,
			  struct stall_facts *f)
{
	f->data = model_data_of(d->model, f->vm);
	if (f->err_ns >= UINT32_MAX)
		facts_unjoin(f);
	facts_close(f);
	if (f->err_ns < UINT32_MAX || f->kind == GUEST_CPU_UNKNOWN)
		facts_host_log(f, d->model);
	f->sampled = (struct facts_sampled){0};
	f->guest_peer = (struct facts_guest_peer){0};
	f->n_hits = f->other_hits = 0;
	if (f->err_ns < UINT32_MAX) {
		spins_fill(f, d->model);
		hints_fill(v->hints, d->model, f);
		overdue_fill(d->overdue, f);
		stall_peer_fill(d, v, f);
	}
	f->denied = facts_deny(f);
}

void stall_emit(struct stall_detector *d, const struct stall_vm *v, struct stall_facts *f)
{
	stall_facts_complete(d, v, f);
	if (f->denied || d->options.all)
		d->found(d->context, f);
}

/* Adds the open span of the vCPU if it follows the spans that have arrived. */
void stall_add_open_span(const struct stall_detector *d, struct stall_facts *f, uint32_t vcpu)
{
	struct vcpu_span open;
	struct host_ns delivered;

	if (model_vcpu_delivered(d->model, f->vm, vcpu, &delivered) ||
	    model_vcpu_current(d->model, f->vm, vcpu, &open) || delivered.ns != open.begin.ns)
		return;
	facts_vcpu_span(f, &open);
}

/* Returns true if everything is known about the vCPU up to the end of this run interval. */
static bool reported_whole(const struct stall_detector *d, const struct stall_facts *f,
			   uint32_t vcpu)
{
	struct vcpu_span open;
	struct host_ns delivered;

	if (model_vcpu_delivered(d->model, f->vm, vcpu, &delivered) || delivered.ns >= f->end.ns)
		return true;
	/* The model passes on held spans soon, however far its time has jumped. */
	if (model_vcpu_current(d->model, f->vm, vcpu, &open) || delivered.ns != open.begin.ns)
		return false;
	if (model_now(d->model).ns - f->queued.ns > PENDING_LIMIT_NS)
		return true;
	return open.state == VCPU_GUEST || open.state == VCPU_KVM || open.state == VCPU_VMM ||
	       (open.state == VCPU_UNKNOWN && !model_data_of(d->model, f->vm).host_events);
}

/* Returns true if the times of the other vCPUs and the names of stacks are known. They come late as
 * well, but are not waited for long. */
static bool peers_settled(const struct stall_detector *d, const struct stall_vm *v,
			  struct stall_track *k, const struct stall_facts *f)
{
	struct host_ns now = model_now(d->model);

	if (now.ns - f->queued.ns > PENDING_LIMIT_NS)
		return true;
	if (now.ns - k->peers_asked.ns < STALL_PROVE_EVERY_NS)
		return false;
	k->peers_asked = now;
	return stall_peer_settled(v, f, now) && spins_named(f, d->model) &&
	       hints_settled(v->hints, d->model, k->vm, f->end);
}

/* Returns false if, within the clocks' error, the host's event that caused the guest's last event
 * may still come. */
static bool clocks_settled(const struct stall_detector *d, const struct stall_facts *f)
{
	int64_t err_ns =
		f->err_ns < PENDING_LIMIT_NS / 2 ? 2 * (int64_t)f->err_ns : PENDING_LIMIT_NS;

	return model_now(d->model).ns - f->end.ns >= err_ns;
}

/* A fair scheduler makes a task wait for about as long as the time that it was charged for. */
static void debt_find(const struct stall_track *k, struct stall_facts *f)
{
	if (k->debt.ns && f->kind == GUEST_CPU_TASK && f->waiter_pid == k->debt.pid &&
	    f->begin.ns >= k->debt.end.ns && f->begin.ns - k->debt.end.ns <= k->debt.ns)
		f->debt = k->debt;
}

/* f: complete. */
static void debt_note(struct stall_track *k, const struct stall_facts *f)
{
	int64_t ns = facts_denied_by_host(f);

	if (f->kind == GUEST_CPU_TASK && ns >= f->than_ns / 2)
		k->debt = (struct facts_debt){f->pid, ns, f->begin, f->end};
}

void stall_pending_check(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
			 bool all)
{
	uint32_t vcpu = 0;
	bool known;

	if (!k->n_pending) /* the usual case: this runs after almost every span */
		return;
	known = !model_vcpu_of_guest_cpu(d->model, k->vm, k->cpu, &vcpu);
	while (k->n_pending) {
		struct stall_facts *f = k->pending;

		if (known && !all &&
		    (!clocks_settled(d, f) || !reported_whole(d, f, vcpu) ||
		     !peers_settled(d, v, k, f)))
			return;
		if (known && !f->late.ns)
			stall_add_open_span(d, f, vcpu);
		debt_find(k, f);
		stall_emit(d, v, f);
		debt_note(k, f);
		stall_storm_period(d, v, k, f);
		k->n_pending--;
		memmove(f, f + 1, k->n_pending * sizeof(*f));
	}
}

void stall_pending_add(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
		       const struct stall_facts *f)
{
	if (!k->pending)
		k->pending = calloc(PENDING_MAX, sizeof(*k->pending));
	if (!k->pending) {
		d->dropped++;
		return;
	}
	if (k->n_pending == PENDING_MAX)
		stall_pending_check(d, v, k, true);
	k->pending[k->n_pending] = *f;
	k->pending[k->n_pending++].queued = model_now(d->model);
	stall_pending_check(d, v, k, false);
}

struct stall_recent stall_recent_of(const struct stall_facts *f)
{
	return (struct stall_recent){
		.begin = f->begin,
		.end = f->end,
		.idle = f->kind == GUEST_CPU_IDLE,
		.kind = f->kind,
		.pid = f->pid,
		.number = f->number,
		.vector = f->vector,
		.ticks_stopped = facts_ticks_stopped(f),
		.denial = {facts_denial_end(f).ns - facts_denial_ns(f)},
	};
}

static void recent_add(struct stall_track *k, const struct stall_facts *f)
{
	k->recent[k->n_recent++ % STALL_RECENT_MAX] = stall_recent_of(f);
	if (k->n_recent == 2 * STALL_RECENT_MAX)
		k->n_recent = STALL_RECENT_MAX;
}

/* Fills the facts of a long run interval that ends at `t` from the track. */
void stall_period_seal(const struct stall_detector *d, const struct stall_vm *v,
		       const struct stall_track *k, struct stall_facts *f, struct host_ns t)
{
	facts_seal(f, t);
	f->than_ns = d->options.than_ns;
	f->err_ns = k->err_ns > f->begin_err_ns ? k->err_ns : f->begin_err_ns;
	if (stall_unproven(d, k))
		f->err_ns = UINT64_MAX;
	f->tick_interval_ns =
		k->ticks_seen >= STALL_TICKS_WANTED ? k->tick_interval_ns : v->tick_interval_ns;
	waiters_count(v, f);
}

static void period_emit(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
			const struct stall_facts *f)
{
	recent_add(k, f);
	if (f->kind !=
	    GUEST_CPU_IDLE) /* what the host does to an idle CPU is reported as a chain */
		stall_pending_add(d, v, k, f);
}

void stall_period_keep(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
		       struct stall_facts *f, struct host_ns t)
{
	stall_period_seal(d, v, k, f, t);
	period_emit(d, v, k, f);
}
