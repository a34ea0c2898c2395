/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/state_times.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/stall/describe.h"

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

static void on_span(void *context, const struct vcpu_span *span)
{
	struct state_times *s = context;
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

/* Says how the states fail to add up to `passed_ns`; false if they do add up. */
static bool states_fail(const int64_t *ns, int64_t passed_ns, char *why, size_t why_bytes)
{
	int64_t sum = 0;
	int negative = -1;

	for (int i = 0; i < VCPU_STATE_COUNT; i++) {
		sum += ns[i];
		negative = ns[i] < 0 ? i : negative;
	}
	if (sum == passed_ns && negative < 0)
		return false;
	if (negative >= 0)
		snprintf(why, why_bytes,
			 "state %s has %" PRId64 " ns (all states sum to %" PRId64 " ns, %" PRId64
			 " ns passed)",
			 vcpu_state_name((enum vcpu_state)negative), ns[negative], sum, passed_ns);
	else
		snprintf(why, why_bytes, "its states sum to %" PRId64 " ns, %" PRId64 " ns passed",
			 sum, passed_ns);
	return true;
}

/* Returns true if the incident's breakdown adds up; otherwise describes the difference. */
static bool incident_balances(const struct incident *i, char *why, size_t why_bytes)
{
	return !states_fail(i->breakdown_ns, i->end.ns - i->begin.ns, why, why_bytes);
}

void incident_verify(struct incident *i)
{
	char why[160];

	if (incident_balances(i, why, sizeof(why)))
		return;
	i->inconsistent = true;
	i->verdict = i->runner_up = VERDICT_UNDETERMINED;
	i->confidence = CONFIDENCE_UNDETERMINED;
	memset(i->because, 0, sizeof(i->because));
	i->because[0].kind = FINDING_INCONSISTENT;
	describe(i->because[0].name, sizeof(i->because[0].name), "%s", why);
}

static bool vcpu_balances(const struct report *r, const struct report_vcpu *v, char *why,
			  size_t why_bytes)
{
	if (states_fail(v->states_ns, v->end.ns - v->begin.ns, why, why_bytes))
		return false;
	if (v->begin.ns >= r->begin.ns && v->end.ns <= r->end.ns)
		return true;
	snprintf(why, why_bytes, "its time exceeds the recording's");
	return false;
}

size_t report_imbalances(const struct report *r, char *why, size_t why_bytes)
{
	size_t n = 0;
	char what[160];

	for (size_t i = 0; i < r->n_vcpus; i++) {
		if (!vcpu_balances(r, &r->vcpus[i], what, sizeof(what)) && !n++)
			snprintf(why, why_bytes, "vCPU %u of VM %s: %s", r->vcpus[i].vcpu,
				 report_vm_name(r, r->vcpus[i].vm), what);
	}
	for (size_t i = 0; i < r->n_incidents; i++) {
		if (!incident_balances(&r->incidents[i], what, sizeof(what)) && !n++)
			snprintf(why, why_bytes, "stall %zu of the report, on vCPU %u of VM %s: %s",
				 i + 1, r->incidents[i].vcpu, report_vm_name(r, r->incidents[i].vm),
				 what);
	}
	return n;
}
