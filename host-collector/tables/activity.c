/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/tables/activity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/tables/chains.h"
#include "host-collector/tables/steal.h"
#include "host-collector/util/lru.h"

enum { VCPUS_MAX = 4096 };

struct vcpu_activity {
	struct host_ns counted; /* until then */
	bool any;
	int64_t state_ns[VCPU_STATE_COUNT];
	uint64_t exits;
	uint64_t counted_exits, counted_before; /* by the kernel: totals */
};

struct activity {
	struct model *model;
	struct analyses analyses;
	struct chains *chains; /* these two belong to `analyses` */
	struct steal *steal;
	struct lru index;
	struct vcpu_activity *vcpus;
};

static struct vcpu_activity *vcpu_get(struct activity *a, uint32_t vm, uint32_t vcpu)
{
	bool fresh;
	uint32_t slot = lru_put(&a->index, (uint64_t)vm << 32 | vcpu, &fresh);

	if (fresh)
		memset(&a->vcpus[slot], 0, sizeof(a->vcpus[slot]));
	return &a->vcpus[slot];
}

/* As much of the span as was not counted yet. */
static void count(struct vcpu_activity *v, const struct vcpu_span *span)
{
	int64_t begin = span->begin.ns;

	if (v->any && v->counted.ns > begin)
		begin = v->counted.ns;
	if (span->end.ns <= begin)
		return;
	v->state_ns[span->state] += span->end.ns - begin;
	v->counted = span->end;
	v->any = true;
}

static void on_vcpu_span(void *context, const struct vcpu_span *span)
{
	struct activity *a = context;

	count(vcpu_get(a, span->vm, span->vcpu), span);
}

static void on_host_instant(void *context, const struct host_instant *i)
{
	struct activity *a = context;

	if (i->of_vcpu && i->event.type == VS_EVENT_KVM_EXIT)
		vcpu_get(a, i->vm, i->vcpu)->exits++;
}

/* Totals over all reasons of a vCPU. */
static void on_exits_counted(void *context, const struct message_exit_summary *m)
{
	struct activity *a = context;

	for (size_t i = 0; i < m->n_cells; i++)
		vcpu_get(a, m->vm, m->cells[i].vcpu)->counted_exits = 0;
	for (size_t i = 0; i < m->n_cells; i++)
		vcpu_get(a, m->vm, m->cells[i].vcpu)->counted_exits += m->cells[i].count;
}

struct activity *activity_new(struct model *m)
{
	struct activity *a = calloc(1, sizeof(*a));
	struct model_observer observer = {.vcpu_span = on_vcpu_span,
					  .host_instant = on_host_instant,
					  .host_types = EVENT_SET(VS_EVENT_KVM_EXIT),
					  .exits_counted = on_exits_counted};
	const struct figures_options per_vcpu = {.per_vcpu = true};

	if (!a)
		return NULL;
	a->model = m;
	observer.context = a;
	a->vcpus = calloc(VCPUS_MAX, sizeof(*a->vcpus));
	a->chains = analyses_start(&a->analyses, &chains_analysis, m, &per_vcpu);
	a->steal = analyses_start(&a->analyses, &steal_analysis, m, NULL);
	if (!a->vcpus || !a->chains || !a->steal || lru_init(&a->index, VCPUS_MAX) ||
	    model_observe(m, &observer)) {
		activity_free(a);
		return NULL;
	}
	return a;
}

void activity_free(struct activity *a)
{
	if (!a)
		return;
	analyses_fini(&a->analyses);
	lru_fini(&a->index);
	free(a->vcpus);
	free(a);
}

static struct activity_row *row_find(struct activity_row *rows, size_t n, uint32_t vm,
				     uint32_t vcpu)
{
	for (size_t i = 0; i < n; i++) {
		if (rows[i].vm == vm && rows[i].vcpu == vcpu)
			return &rows[i];
	}
	return NULL;
}

/* The span that goes on counts up to now, unless one before it is still kept back. */
static void count_open(struct activity *a, struct vcpu_activity *v, uint32_t vm, uint32_t vcpu,
		       struct activity_row *row)
{
	struct vcpu_span now;
	struct host_ns reported;

	if (model_vcpu_current(a->model, vm, vcpu, &now))
		return;
	row->tid = now.tid;
	row->now = now.state;
	if (!model_vcpu_delivered(a->model, vm, vcpu, &reported) && reported.ns >= now.begin.ns) {
		now.end = model_now(a->model);
		count(v, &now);
	}
}

static void vcpu_look(struct activity *a, uint32_t vm, uint32_t vcpu, struct activity_row *row)
{
	struct vcpu_activity *v = vcpu_get(a, vm, vcpu);

	*row = (struct activity_row){.vm = vm, .vcpu = vcpu, .now = VCPU_UNKNOWN};
	count_open(a, v, vm, vcpu, row);
	memcpy(row->state_ns, v->state_ns, sizeof(row->state_ns));
	row->exits = v->exits;
	if (v->counted_exits > v->counted_before)
		row->exits += v->counted_exits - v->counted_before;
	v->counted_before = v->counted_exits;
	v->exits = 0;
	memset(v->state_ns, 0, sizeof(v->state_ns));
}

static void steal_look(const struct activity *a, struct activity_row *rows, size_t n)
{
	const struct steal_vcpu *s;

	for (size_t i = 0; (s = steal_vcpu(a->steal, i)); i++) {
		struct activity_row *row = row_find(rows, n, s->vm, s->vcpu);

		if (!row || !s->clock)
			continue;
		row->steal_known = true;
		row->steal_ns = s->accounted_ns;
		row->steal_span_ns = s->end.ns - s->begin.ns;
	}
}

static void latency_look(const struct activity *a, struct activity_row *rows, size_t n)
{
	const struct chain_group *g;

	for (size_t i = 0; (g = chains_group(a->chains, i)); i++) {
		const struct histogram *h = &g->stages[CHAIN_STAGE_LATENCY];
		struct activity_row *row = row_find(rows, n, g->vm, g->vcpu);

		if (!row || !h->count)
			continue;
		row->latency_known = true;
		if ((int64_t)h->max_ns > row->latency_ns)
			row->latency_ns = (int64_t)h->max_ns;
	}
}

long activity_look(struct activity *a, struct activity_row *rows, size_t max)
{
	uint32_t vms[MODEL_VMS_MAX], vcpus[VS_CPUS_MAX];
	size_t n_vms = model_vms(a->model, vms, MODEL_VMS_MAX), n = 0;

	for (size_t i = 0; i < n_vms && i < MODEL_VMS_MAX; i++) {
		size_t n_vcpus = model_vcpus(a->model, vms[i], vcpus, VS_CPUS_MAX);

		for (size_t k = 0; k < n_vcpus && k < VS_CPUS_MAX && n < max; k++)
			vcpu_look(a, vms[i], vcpus[k], &rows[n++]);
	}
	steal_look(a, rows, n);
	latency_look(a, rows, n);
	analyses_clear(&a->analyses);
	return analyses_error(&a->analyses) ? analyses_error(&a->analyses) : (long)n;
}
