/* SPDX-License-Identifier: GPL-2.0-only */
/* The host side of the stall detector: chains of spans in which the host keeps a vCPU from the
 * guest; steps of the guest's clock. */
#include "host-collector/analyze/stall/stall_internal.h"

static int64_t overlap(struct host_ns a, struct host_ns b, struct host_ns x, struct host_ns y)
{
	int64_t begin = a.ns > x.ns ? a.ns : x.ns, end = b.ns < y.ns ? b.ns : y.ns;

	return end > begin ? end - begin : 0;
}

/* Finds the guest's run interval that contains a chain of the host. Returns false if the chain
 * is reported by itself. */
static bool chain_stands_alone(const struct stall_detector *d, const struct stall_track *k,
			       struct stall_facts *chain)
{
	unsigned n = k->n_recent < STALL_RECENT_MAX ? k->n_recent : STALL_RECENT_MAX;
	int64_t best = 0;

	chain->kind = GUEST_CPU_UNKNOWN;
	chain->pid = 0;
	if (stall_unproven(d, k))
		return true;
	if (k->task_known && !model_guest_cpu_offline(d->model, k->vm, k->cpu)) {
		best = overlap(chain->begin, chain->end, k->period.begin, model_now(d->model));
		if (k->period.kind == GUEST_CPU_TASK && best >= d->options.than_ns)
			return false;
		if (best > 0)
			chain->kind = k->period.kind;
		chain->pid = k->period.pid;
	}
	for (unsigned i = 0; i < n; i++) {
		int64_t ns =
			overlap(chain->begin, chain->end, k->recent[i].begin, k->recent[i].end);

		if (!k->recent[i].idle && ns >= d->options.than_ns)
			return false;
		if (ns > best) {
			best = ns;
			chain->kind = GUEST_CPU_IDLE;
			chain->pid = 0;
		}
	}
	return true;
}

void stall_chain_end(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k)
{
	struct stall_facts *f = &k->chain;

	k->chain_open = false;
	if (!k->chain_filled)
		return;
	stall_storm_piece(d, v, k);
	if (facts_duration(f) < d->options.than_ns || !chain_stands_alone(d, k, f))
		return;
	f->than_ns = d->options.than_ns;
	/* Only host times are involved. */
	f->err_ns = stall_unproven(d, k) ? UINT64_MAX : 0;
	stall_emit(d, v, f);
}

static void chain_begin(struct stall_track *k, struct host_ns t)
{
	k->chain.begin = t;
	k->chain.cut = k->chain_after_unknown;
	k->chain_open = true;
	k->chain_filled = false;
	k->n_chain_spans = 0;
}

static void chain_span(struct stall_track *k, const struct vcpu_span *span)
{
	k->chain.end.ns = INT64_MAX;
	facts_vcpu_span(&k->chain, span);
	k->chain.end = span->end;
}

void stall_chain_fill(struct stall_track *k)
{
	const bool cut = k->chain.cut;

	if (k->chain_filled)
		return;
	facts_begin(&k->chain, k->vm, k->cpu, k->chain.begin);
	k->chain.cut = cut;
	k->chain_filled = true;
	for (unsigned i = 0; i < k->n_chain_spans; i++)
		chain_span(k, &k->chain_spans[i]);
}

static void chain_add(const struct stall_detector *d, struct stall_track *k,
		      const struct vcpu_span *span)
{
	const int64_t ns = span->end.ns - k->chain.begin.ns;

	/* The holders of the pCPU are kept only for a while. */
	if (!k->chain_filled && k->n_chain_spans < STALL_CHAIN_SPANS && !span->n_crowd &&
	    ns < STALL_PIECE_NS && ns < d->options.than_ns) {
		k->chain_spans[k->n_chain_spans++] = *span;
		k->chain.end = span->end;
		return;
	}
	stall_chain_fill(k);
	chain_span(k, span);
}

void stall_vcpu_span(void *context, const struct vcpu_span *span)
{
	struct stall_detector *d = context;
	struct stall_vm *v = stall_vm_get(d, span->vm);
	struct stall_track *k;
	uint16_t cpu;

	if (!v || model_guest_cpu_of_vcpu(d->model, span->vm, span->vcpu, &cpu))
		return;
	k = stall_track_get(v, cpu);
	if (!k)
		return;
	hints_vcpu(v->hints, span);
	if (k->reading_valid)
		facts_vcpu_span(&k->reading, span);
	for (unsigned i = 0; i < k->n_pending; i++) {
		if (!k->pending[i].late.ns) /* the interrupt's chain has the states */
			facts_vcpu_span(&k->pending[i], span);
	}
	facts_vcpu_span(&k->period, span);
	if (k->doubt)
		facts_vcpu_span(&k->doubted, span);
	if (k->proven_valid)
		facts_vcpu_span(&k->proven, span);
	if (k->unseen_valid)
		facts_vcpu_span(&k->unseen, span);
	if (k->unseen_valid && k->before_unseen_valid)
		facts_vcpu_span(&k->before_unseen, span);
	if (k->in_interrupt)
		facts_vcpu_span(&k->interrupt, span);
	if (k->in_interrupt && k->before_valid)
		facts_vcpu_span(&k->before, span);
	if (k->n_pending)
		stall_pending_check(d, v, k, false);

	if (!vcpu_span_denies(span)) {
		k->chain.cut |= span->state == VCPU_UNKNOWN;
		if (k->chain_open)
			stall_chain_end(d, v, k);
		stall_storm_span(d, v, k, span);
		k->chain_after_unknown = span->state == VCPU_UNKNOWN;
		return;
	}
	if (!k->chain_open)
		chain_begin(k, span->begin);
	stall_storm_span(d, v, k, span);
	chain_add(d, k, span);
}

/* Not inlined: most events are of other types, and would pay for its registers. */
__attribute__((noinline)) static void host_event(struct stall_detector *d,
						 const struct host_instant *i)
{
	struct stall_vm *v = i->of_vcpu ? stall_vm_get(d, i->vm) : NULL;

	/* A loss of the collector's own events concerns only stacks. */
	for (size_t k = 0; i->event.type == VS_EVENT_LOST && k < d->n_vms; k++) {
		if (i->event.cpu != VS_CPU_COLLECTOR)
			hints_lost(d->vms[k]->hints, d->model, i);
	}
	if (v)
		hints_host(v->hints, d->model, i);
}

void stall_host_instant(void *context, const struct host_instant *i)
{
	struct stall_detector *d = context;

	if (event_set_has(&d->host_types, i->event.type))
		host_event(d, i);
}

/* All CPUs of a guest share its clock, so a step is reported for the first CPU. If the guest's
 * times are not proven, a step of its clock has no meaning. */
void stall_guest_clock(void *context, const struct guest_clock_reading *r)
{
	struct stall_detector *d = context;
	struct stall_vm *v = stall_vm_get(d, r->vm);
	struct stall_track *k = v ? stall_track_get(v, 0) : NULL;
	struct stall_facts *f;

	if (!k)
		return;
	f = &k->reading;
	if (k->reading_valid && r->step_ns && r->t.ns > f->begin.ns && !stall_unproven(d, k)) {
		facts_end(f, r->t);
		f->than_ns = d->options.than_ns;
		f->err_ns = k->err_ns;
		f->clock_step_ns = r->step_ns;
		f->clock_step_proven = r->proven;
		f->kind = k->task_known ? k->period.kind : GUEST_CPU_UNKNOWN;
		f->pid = k->task_known ? k->period.pid : 0;
		stall_pending_add(d, v, k, f);
	}
	facts_begin(f, k->vm, k->cpu, r->t);
	k->reading_valid = true;
}
