/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/state_times.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct times_vm {
	uint32_t vm;
	struct report_vcpu *vcpus[VS_CPUS_MAX];
};

struct state_times {
	size_t n_vms, n_vcpus;
	struct times_vm *vms[MODEL_VMS_MAX];
	size_t n_unplugged;
	struct report_vcpu *unplugged;
	bool out_of_memory;
};

static struct report_vcpu *vcpu_get(struct state_times *s, uint32_t vm, uint32_t vcpu)
{
	size_t i = 0;

	while (i < s->n_vms && s->vms[i]->vm != vm)
		i++;
	if (vcpu >= VS_CPUS_MAX || i == MODEL_VMS_MAX)
		return NULL;
	if (i == s->n_vms) {
		s->vms[i] = calloc(1, sizeof(*s->vms[i]));
		if (!s->vms[i])
			return NULL;
		s->vms[i]->vm = vm;
		s->n_vms++;
	}
	if (!s->vms[i]->vcpus[vcpu]) {
		s->vms[i]->vcpus[vcpu] = calloc(1, sizeof(struct report_vcpu));
		s->n_vcpus += s->vms[i]->vcpus[vcpu] != NULL;
	}
	return s->vms[i]->vcpus[vcpu];
}

/* Returns the vCPU if it was seen before, else NULL. */
static inline struct report_vcpu *vcpu_known(const struct state_times *s, uint32_t vm,
					     uint32_t vcpu)
{
	for (size_t i = 0; vcpu < VS_CPUS_MAX && i < s->n_vms; i++) {
		if (s->vms[i]->vm == vm)
			return s->vms[i]->vcpus[vcpu];
	}
	return NULL;
}

static void unplugged_add(struct state_times *s, const struct report_vcpu *v)
{
	struct report_vcpu *more =
		reallocarray(s->unplugged, s->n_unplugged + 1, sizeof(*s->unplugged));

	if (!more) {
		s->out_of_memory = true;
		return;
	}
	s->unplugged = more;
	s->unplugged[s->n_unplugged++] = *v;
}

/* Not inlined: the usual span would pay for its stack frame. */
__attribute__((noinline)) static void span_add(struct state_times *s, const struct vcpu_span *span)
{
	struct report_vcpu *v = vcpu_get(s, span->vm, span->vcpu);

	if (!v) {
		s->out_of_memory = true;
		return;
	}
	if (v->end.ns > v->begin.ns && span->begin.ns > v->end.ns) {
		unplugged_add(s, v);
		*v = (struct report_vcpu){0};
	}
	if (v->end.ns == v->begin.ns) {
		v->vm = span->vm;
		v->vcpu = span->vcpu;
		v->begin = span->begin;
	}
	v->states_ns[span->state] += span->end.ns - span->begin.ns;
	v->end = span->end;
}

static void on_span(void *context, const struct vcpu_span *span)
{
	struct report_vcpu *v = vcpu_known(context, span->vm, span->vcpu);

	if (v && v->end.ns > v->begin.ns && span->begin.ns <= v->end.ns) {
		v->states_ns[span->state] += span->end.ns - span->begin.ns;
		v->end = span->end;
		return;
	}
	span_add(context, span);
}

struct state_times *state_times_new(struct model *m)
{
	struct state_times *s = calloc(1, sizeof(*s));
	struct model_observer observer = {.vcpu_span = on_span, .context = s};

	if (!s)
		return NULL;
	if (!model_observe(m, &observer))
		return s;
	free(s);
	return NULL;
}

void state_times_free(struct state_times *s)
{
	for (size_t i = 0; s && i < s->n_vms; i++) {
		for (size_t k = 0; k < VS_CPUS_MAX; k++)
			free(s->vms[i]->vcpus[k]);
		free(s->vms[i]);
	}
	if (s)
		free(s->unplugged);
	free(s);
}

int state_times_give(struct state_times *s, struct report *r)
{
	r->vcpus = calloc(s->n_vcpus + s->n_unplugged + 1, sizeof(*r->vcpus));
	if (!r->vcpus || s->out_of_memory)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_unplugged; i++)
		r->vcpus[r->n_vcpus++] = s->unplugged[i];
	for (size_t i = 0; i < s->n_vms; i++) {
		for (size_t k = 0; k < VS_CPUS_MAX; k++) {
			if (s->vms[i]->vcpus[k])
				r->vcpus[r->n_vcpus++] = *s->vms[i]->vcpus[k];
		}
	}
	return 0;
}

/* Returns how the states fail to add up to `passed_ns`; kind NONE if they do add up. */
static struct finding states_finding(const int64_t *ns, int64_t passed_ns)
{
	struct finding x = {.kind = FINDING_STATES_SUM, .ns = {0, passed_ns}};

	for (unsigned i = 0; i < VCPU_STATE_COUNT; i++) {
		x.ns[0] += ns[i];
		if (ns[i] < 0) {
			x.kind = FINDING_STATE_NEGATIVE;
			x.n[0] = (uint64_t)ns[i];
			x.n[1] = i;
		}
	}
	if (x.kind == FINDING_STATES_SUM && x.ns[0] == passed_ns)
		x.kind = FINDING_NONE;
	return x;
}

static struct finding incident_finding(const struct incident *i)
{
	return states_finding(i->breakdown_ns, i->end.ns - i->begin.ns);
}

void incident_verify(struct incident *i)
{
	const struct finding found = incident_finding(i);

	if (!found.kind)
		return;
	i->inconsistent = true;
	i->verdict = i->runner_up = VERDICT_UNDETERMINED;
	i->confidence = CONFIDENCE_UNDETERMINED;
	memset(i->because, 0, sizeof(i->because));
	finding_add(i->because, REPORT_BECAUSE_MAX,
		    &(struct finding){.kind = FINDING_INCONSISTENT});
	finding_add(i->because, REPORT_BECAUSE_MAX, &found);
}

static struct finding vcpu_finding(const struct report *r, const struct report_vcpu *v)
{
	const struct finding found = states_finding(v->states_ns, v->end.ns - v->begin.ns);

	if (found.kind || (v->begin.ns >= r->begin.ns && v->end.ns <= r->end.ns))
		return found;
	return (struct finding){.kind = FINDING_BEYOND_RECORDING};
}

/* Counts `found`, if it is one. Stores it and where it is, if it is the first one. */
static void imbalance_add(const struct report *r, struct finding where, uint32_t vm,
			  const struct finding *found, size_t *n, struct finding *first)
{
	if (!found->kind || (*n)++)
		return;
	snprintf(where.name, sizeof(where.name), "%s", report_vm_name(r, vm));
	first[0] = where;
	first[1] = *found;
}

size_t report_imbalances(const struct report *r, struct finding *first)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_vcpus; i++) {
		const struct report_vcpu *v = &r->vcpus[i];
		const struct finding found = vcpu_finding(r, v);

		imbalance_add(r, (struct finding){.kind = FINDING_IN_VCPU, .n = {v->vcpu}}, v->vm,
			      &found, &n, first);
	}
	for (size_t i = 0; i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];
		const struct finding found = incident_finding(x);

		imbalance_add(r,
			      (struct finding){.kind = FINDING_IN_INCIDENT, .n = {x->vcpu, i + 1}},
			      x->vm, &found, &n, first);
	}
	return n;
}
