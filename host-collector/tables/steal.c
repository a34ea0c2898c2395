/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Readings arrive before the spans that cover them: the agent's totals need no merging, while the
 * timeline waits for all sources. So each vCPU keeps a few readings in a ring until its spans have
 * reached their times.
 */
#include "host-collector/tables/steal.h"

#include <stdlib.h>

#include "host-collector/tables/figures.h"
#include "host-collector/util/lru.h"

enum { VCPUS_MAX = 4096, READINGS_MAX = 64 };

struct reading {
	struct host_ns t;
	uint64_t steal_ns;
};

struct account {
	struct steal_vcpu seen;
	bool begun; /* the first reading has been placed; and what it was: */
	uint64_t steal_ns;
	int64_t measured_ns, unknown_ns;
	int64_t total_ns, total_unknown_ns; /* of all spans so far... */
	struct host_ns covered;             /* ... which reach to here */
	unsigned head, count;
	struct reading readings[READINGS_MAX];
};

struct steal {
	struct analysis_base base;
	struct lru index;
	struct account *accounts[VCPUS_MAX];
};

static struct account *account_get(struct steal *s, uint32_t vm, uint32_t vcpu)
{
	bool fresh;
	uint32_t slot = lru_put(&s->index, (uint64_t)vm << 32 | vcpu, &fresh);
	struct account *a = s->accounts[slot];

	if (!a)
		a = s->accounts[slot] = malloc(sizeof(*a));
	if (a && fresh)
		*a = (struct account){.seen = {.vm = vm, .vcpu = vcpu}};
	if (!a)
		lru_remove(&s->index, slot);
	return a;
}

/* The guest's account at `r`, the host's then being `measured_ns`. */
static void reading_place(struct account *a, const struct reading *r, int64_t measured_ns,
			  int64_t unknown_ns)
{
	struct steal_vcpu *seen = &a->seen;

	/* A counter that steps back is that of another boot. */
	if (!a->begun || r->steal_ns < a->steal_ns) {
		a->begun = true;
		a->steal_ns = r->steal_ns;
		a->measured_ns = measured_ns;
		a->unknown_ns = unknown_ns;
		seen->begin = r->t;
		seen->readings = 0;
	}
	seen->end = r->t;
	seen->readings++;
	seen->accounted_ns = (int64_t)(r->steal_ns - a->steal_ns);
	seen->measured_ns = measured_ns - a->measured_ns;
	seen->unknown_ns = unknown_ns - a->unknown_ns;
}

static void span_take(void *context, const struct vcpu_span *span)
{
	struct account *a = account_get(context, span->vm, span->vcpu);
	bool waits = span->state == VCPU_RUNNABLE || span->state == VCPU_THROTTLED;
	bool unknown = span->state == VCPU_UNKNOWN;
	int64_t ns = span->end.ns - span->begin.ns;

	if (!a)
		return;
	while (a->count && a->readings[a->head].t.ns < span->end.ns) {
		const struct reading *r = &a->readings[a->head];
		int64_t part = r->t.ns > span->begin.ns ? r->t.ns - span->begin.ns : 0;

		/* Before the first span nothing is known of the vCPU. */
		if (r->t.ns >= span->begin.ns || a->covered.ns)
			reading_place(a, r, a->total_ns + (waits ? part : 0),
				      a->total_unknown_ns + (unknown ? part : 0));
		a->head = (a->head + 1) % READINGS_MAX;
		a->count--;
	}
	a->total_ns += waits ? ns : 0;
	a->total_unknown_ns += unknown ? ns : 0;
	a->covered = span->end;
}

static void guest_steal_take(void *context, const struct guest_steal *g)
{
	struct steal *s = context;
	struct account *a;
	uint32_t vcpu;

	if (model_vcpu_of_guest_cpu(s->base.model, g->vm, g->cpu, &vcpu))
		return;
	a = account_get(s, g->vm, vcpu);
	/* More than the ring holds are far ahead of the spans, and the next will do as well; one
	 * behind what the spans have passed cannot be placed any more. */
	if (!a || a->count == READINGS_MAX || g->t.ns < a->covered.ns)
		return;
	a->seen.guest_cpu = g->cpu;
	a->seen.clock = g->clock;
	a->seen.unit_ns = g->unit_ns;
	a->readings[(a->head + a->count++) % READINGS_MAX] = (struct reading){g->t, g->steal_ns};
}

static void steal_free(void *analysis)
{
	struct steal *s = analysis;

	if (!s)
		return;
	for (unsigned i = 0; i < VCPUS_MAX; i++)
		free(s->accounts[i]);
	lru_fini(&s->index);
	free(s);
}

static void *steal_new(struct model *m, const struct figures_options *options)
{
	struct steal *s = analysis_allocate(sizeof(*s), m, options);
	struct model_observer observer = {
		.vcpu_span = span_take, .guest_steal = guest_steal_take, .context = s};

	if (!s)
		return NULL;
	if (lru_init(&s->index, VCPUS_MAX) || model_observe(m, &observer)) {
		steal_free(s);
		return NULL;
	}
	return s;
}

static void steal_clear(void *analysis)
{
	struct steal *s = analysis;

	for (uint32_t slot = 0; slot < lru_slots(&s->index); slot++) {
		struct account *a = s->accounts[slot];

		if (!lru_used(&s->index, slot) || !a || !a->begun)
			continue;
		a->steal_ns += (uint64_t)a->seen.accounted_ns;
		a->measured_ns += a->seen.measured_ns;
		a->unknown_ns += a->seen.unknown_ns;
		a->seen.begin = a->seen.end;
		a->seen.readings = 1;
		a->seen.accounted_ns = a->seen.measured_ns = a->seen.unknown_ns = 0;
	}
}

const struct steal_vcpu *steal_vcpu(const struct steal *s, size_t index)
{
	for (uint32_t slot = 0; slot < lru_slots(&s->index); slot++) {
		const struct account *a = s->accounts[slot];

		if (lru_used(&s->index, slot) && a && a->seen.readings > 1 && !index--)
			return &a->seen;
	}
	return NULL;
}

/* ---- table steal ---- */

static const struct figures_column steal_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{0, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"guest_cpu", "guest CPU", TABLE_COUNT}},
	{0, {"accounted", "guest accounts", TABLE_NS}},
	{0, {"measured", "measured", TABLE_NS}},
	{0, {"difference", "difference", TABLE_NS}},
	{0, {"measured_share", "of the time", TABLE_PERCENT}},
	{0, {"unknown", "unknown", TABLE_NS}},
	{0, {"span", "over", TABLE_NS}},
	{0, {"readings", "readings", TABLE_COUNT}},
	{0, {"unit", "guest's unit", TABLE_NS}},
	{0, {"steal_clock", "steal clock", TABLE_TEXT}},
};

static int steal_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct steal_vcpu *v;

	for (size_t i = 0; (v = steal_vcpu(analysis, i)); i++) {
		int64_t difference = v->accounted_ns - v->measured_ns;

		if (llabs(difference) < view->than_ns)
			continue;
		table_row(t);
		table_text(t, model_vm_name(view->model, v->vm));
		table_count(t, v->vcpu);
		table_count(t, v->guest_cpu);
		if (v->clock)
			table_ns(t, v->accounted_ns);
		else
			table_none(t);
		table_ns(t, v->measured_ns);
		if (v->clock)
			table_ns(t, difference);
		else
			table_none(t);
		table_percent(t, figures_percent(v->measured_ns, v->end.ns - v->begin.ns));
		table_ns(t, v->unknown_ns);
		table_ns(t, v->end.ns - v->begin.ns);
		table_count(t, v->readings);
		table_ns(t, figures_clip(v->unit_ns));
		table_text(t, v->clock ? "yes" : "none");
	}
	return 0;
}

static const struct figures_kind tables[] = {
	{"steal", "Steal as the guest accounts it, beside the wait that was measured",
	 FIGURES_COLUMNS(steal_columns), "measured", false, FIGURES_PER_VCPU, FIGURES_PER_VCPU,
	 true, steal_fill},
	{.name = NULL},
};

const struct analysis steal_analysis = {
	.name = "steal",
	.new = steal_new,
	.free = steal_free,
	.clear = steal_clear,
	.tables = tables,
};
