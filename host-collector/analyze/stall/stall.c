/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One track per guest CPU. The track collects the facts of the current run interval (since the last
 * switch), of the current outermost interrupt, and of the current chain of spans in which the host
 * keeps the vCPU from the guest. An interval that has ended stays pending until the model has
 * delivered the vCPU's spans up to its end.
 */
#include "host-collector/analyze/stall/stall.h"

#include <stdlib.h>

#include "host-collector/analyze/stall/stall_internal.h"

struct stall_vm *stall_vm_search(struct stall_detector *d, uint32_t vm)
{
	struct stall_vm *v, **known = &d->known[vm % MODEL_VMS_MAX];

	for (size_t i = 0; i < d->n_vms; i++) {
		if (d->vms[i]->vm == vm)
			return *known = d->vms[i];
	}
	v = d->n_vms < MODEL_VMS_MAX ? calloc(1, sizeof(*v)) : NULL;
	if (!v)
		return NULL;
	v->vm = vm;
	v->hints = hints_new();
	if (!v->hints || waiters_init(&v->waiters)) {
		hints_free(v->hints);
		free(v);
		return NULL;
	}
	d->vms[d->n_vms++] = v;
	return *known = v;
}

struct stall_track *stall_track_new(struct stall_vm *v, uint16_t cpu)
{
	struct stall_track *k = calloc(1, sizeof(*k));

	v->tracks[cpu] = k;
	if (!k)
		return NULL;
	k->vm = v->vm;
	k->cpu = cpu;
	if (cpu >= v->tracks_end)
		v->tracks_end = cpu + 1u;
	return k;
}

static bool presence_refutes(const struct model *m, uint32_t vm)
{
	const struct presence_count count = model_presence(m, vm);

	return audit_refutes(&count.recent);
}

bool stall_unproven(const struct stall_detector *d, const struct stall_track *k)
{
	return k && (k->err_ns >= UINT32_MAX || model_guest_distrusted(d->model, k->vm) ||
		     presence_refutes(d->model, k->vm));
}

/* Returns true if the guest CPU idled from `begin` to `end`. */
static bool idled(const struct stall_track *k, struct host_ns begin, struct host_ns end)
{
	unsigned n = k->n_recent < STALL_RECENT_MAX ? k->n_recent : STALL_RECENT_MAX;

	if (k->task_known && k->period.kind == GUEST_CPU_IDLE && k->period.begin.ns <= begin.ns)
		return true;
	for (unsigned i = 0; i < n; i++) {
		if (k->recent[i].idle && k->recent[i].begin.ns <= begin.ns &&
		    k->recent[i].end.ns >= end.ns)
			return true;
	}
	return false;
}

/* Takes an interrupt that an idle guest CPU may have taken late. If several were pending, the first
 * one that the guest took stands for all. */
static void on_late_interrupt(struct stall_detector *d, struct stall_vm *v, struct stall_facts *f)
{
	struct stall_track *k = v ? v->tracks[f->cpu] : NULL;

	if (!k || !idled(k, f->begin, f->end) || f->begin.ns < k->late_until.ns)
		return;
	k->late_until = f->end;
	stall_period_seal(d, v, k, f, f->end);
	stall_pending_add(d, v, k, f);
}

/* Takes an interrupt that no run interval shows. The host's events show that it came, the guest's
 * that it was not handled, or late. */
static void on_interrupt(void *context, struct stall_facts *f)
{
	struct stall_detector *d = context;
	struct stall_vm *v = stall_vm_get(d, f->vm);

	if (v && stall_unproven(d, v->tracks[f->cpu]))
		return;
	if (f->late.ns) {
		on_late_interrupt(d, v, f);
		return;
	}
	f->data = model_data_of(d->model, f->vm);
	f->denied = true;
	d->found(d->context, f);
}

static void each_track(struct stall_detector *d,
		       void (*visit)(struct stall_detector *d, struct stall_vm *v,
				     struct stall_track *k))
{
	for (size_t i = 0; i < d->n_vms; i++) {
		for (size_t c = 0; c < d->vms[i]->tracks_end; c++) {
			if (d->vms[i]->tracks[c])
				visit(d, d->vms[i], d->vms[i]->tracks[c]);
		}
	}
}

/* Ends the open chain if its vCPU is back in the guest. The model passes on a span only after its
 * end. */
static void chain_check(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k)
{
	struct vcpu_span open;
	struct host_ns delivered;
	uint32_t vcpu;

	if (!k->chain_open || model_vcpu_of_guest_cpu(d->model, k->vm, k->cpu, &vcpu) ||
	    model_vcpu_delivered(d->model, k->vm, vcpu, &delivered) ||
	    model_vcpu_current(d->model, k->vm, vcpu, &open))
		return;
	if (open.state == VCPU_GUEST && delivered.ns == open.begin.ns &&
	    delivered.ns == k->chain.end.ns)
		stall_chain_end(d, v, k);
}

static void advance_track(struct stall_detector *d, struct stall_vm *v, struct stall_track *k)
{
	chain_check(d, v, k);
	stall_pending_check(d, v, k, false);
}

static void on_advance(void *context, struct host_ns now)
{
	(void)now;
	each_track(context, advance_track);
}

struct stall_detector *stall_new(struct model *m, const struct stall_options *options,
				 stall_found found, void *context)
{
	struct stall_detector *d = calloc(1, sizeof(*d));
	struct model_observer observer = {
		.vcpu_span = stall_vcpu_span,
		.guest_span = stall_guest_span,
		.guest_instant = stall_guest_instant,
		.guest_interrupt = stall_guest_interrupt,
		.host_instant = stall_host_instant,
		.host_types = hints_host_types(),
		.guest_clock = stall_guest_clock,
		.advance = on_advance,
		.context = d,
	};

	if (!d)
		return NULL;
	d->model = m;
	d->host_types = observer.host_types;
	d->options = *options;
	d->found = found;
	d->context = context;
	d->overdue = overdue_new(m, options->than_ns, on_interrupt, d);
	if (!d->overdue || model_observe(m, &observer)) {
		overdue_free(d->overdue);
		free(d);
		return NULL;
	}
	return d;
}

struct chains *stall_chains(const struct stall_detector *d)
{
	return overdue_chains(d->overdue);
}

void stall_free(struct stall_detector *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_vms; i++) {
		for (size_t c = 0; c < d->vms[i]->tracks_end; c++) {
			if (d->vms[i]->tracks[c])
				free(d->vms[i]->tracks[c]->pending);
			free(d->vms[i]->tracks[c]);
		}
		hints_free(d->vms[i]->hints);
		waiters_fini(&d->vms[i]->waiters);
		free(d->vms[i]);
	}
	overdue_free(d->overdue);
	free(d);
}

static void finish_track(struct stall_detector *d, struct stall_vm *v, struct stall_track *k)
{
	if (k->chain_open) {
		k->chain.ongoing = true;
		stall_chain_end(d, v, k);
	}
	if (k->task_known && !model_guest_cpu_offline(d->model, k->vm, k->cpu)) {
		k->period.ongoing = true;
		stall_period_end(d, v, k, &k->period, model_now(d->model));
		k->task_known = false;
	}
	stall_storm_finish(d, v, k);
	stall_pending_check(d, v, k, true);
	stall_storm_period(d, v, k, NULL);
}

void stall_finish(struct stall_detector *d)
{
	overdue_finish(d->overdue);
	for (size_t i = 0; i < d->n_vms; i++)
		hints_finish(d->vms[i]->hints);
	each_track(d, finish_track);
}

/* Describes an open run interval up to the guest's newest event. Later events may not have arrived
 * yet. Returns false if the interval is no stall. */
static bool period_ongoing(const struct stall_detector *d, const struct stall_vm *v,
			   const struct stall_track *k, struct stall_facts *f)
{
	if (!k->task_known || k->period.kind != GUEST_CPU_TASK ||
	    v->guest_last.ns - k->period.begin.ns < d->options.than_ns ||
	    model_guest_cpu_offline(d->model, k->vm, k->cpu))
		return false;
	*f = k->period;
	stall_period_seal(d, v, k, f, v->guest_last);
	f->end = model_now(d->model);
	return true;
}

static bool chain_ongoing(const struct stall_detector *d, struct stall_track *k, uint32_t vcpu,
			  struct stall_facts *f)
{
	struct vcpu_span open;

	if (model_vcpu_current(d->model, k->vm, vcpu, &open) || !vcpu_state_denies(open.state))
		return false;
	if (k->chain_open && k->chain.end.ns == open.begin.ns) {
		stall_chain_fill(k);
		*f = k->chain;
		f->end.ns = INT64_MAX;
	} else {
		facts_begin(f, k->vm, k->cpu, open.begin);
	}
	facts_vcpu_span(f, &open);
	f->end = open.end;
	f->than_ns = d->options.than_ns;
	f->err_ns = k->err_ns;
	f->kind = k->task_known ? k->period.kind : GUEST_CPU_UNKNOWN;
	f->pid = k->task_known ? k->period.pid : 0;
	return facts_duration(f) >= d->options.than_ns;
}

/* Creates the tracks of vCPUs that have no span yet because they never left their pCPU. Their
 * stalls count, too. */
static void tracks_complete(struct stall_detector *d)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n_vms = model_vms(d->model, vms, MODEL_VMS_MAX);

	for (size_t i = 0; i < n_vms; i++) {
		struct stall_vm *v = stall_vm_get(d, vms[i]);
		uint32_t vcpus[VS_CPUS_MAX];
		size_t n = v ? model_vcpus(d->model, vms[i], vcpus, VS_CPUS_MAX) : 0;

		for (size_t k = 0; k < n; k++) {
			uint16_t cpu;

			if (!model_guest_cpu_of_vcpu(d->model, vms[i], vcpus[k], &cpu))
				stall_track_get(v, cpu);
		}
	}
}

size_t stall_ongoing(struct stall_detector *d, struct stall_facts *out, size_t max)
{
	size_t n = 0;

	tracks_complete(d);
	for (size_t i = 0; i < d->n_vms; i++) {
		for (size_t c = 0; c < d->vms[i]->tracks_end && n < max; c++) {
			struct stall_track *k = d->vms[i]->tracks[c];
			struct stall_facts *f = &out[n];
			uint32_t vcpu;
			bool joined;

			if (!k)
				continue;
			joined = !model_vcpu_of_guest_cpu(d->model, k->vm, k->cpu, &vcpu);
			if (!(joined && chain_ongoing(d, k, vcpu, f))) {
				if (!period_ongoing(d, d->vms[i], k, f))
					continue;
				if (joined)
					stall_add_open_span(d, f, vcpu);
			}
			f->ongoing = true;
			stall_facts_complete(d, d->vms[i], f);
			n += f->denied;
		}
	}
	return n;
}

uint64_t stall_dropped(const struct stall_detector *d)
{
	return d->dropped;
}
