/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/tables/run_delay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/tables/culprits.h"
#include "host-collector/tables/figures.h"
#include "host-collector/util/lru.h"

enum { TABLE_ITEMS = 4096 };

struct run_delay {
	struct analysis_base base;
	struct lru vcpu_index, pcpu_index, holder_index, others_index;
	struct run_delay_vcpu *vcpus;
	struct run_delay_pcpu *pcpus;
	struct run_delay_holder *holders;
	struct run_delay_holder *others; /* those with pid RUN_DELAY_OTHERS */
};

static bool runs(enum vcpu_state s)
{
	return s == VCPU_GUEST || s == VCPU_KVM || s == VCPU_VMM;
}

static bool waits(enum vcpu_state s)
{
	return s == VCPU_RUNNABLE || s == VCPU_THROTTLED;
}

static void vcpu_clear(struct run_delay_vcpu *v)
{
	for (int c = 0; c < RUN_DELAY_CAUSES; c++)
		histogram_fini(&v->waits[c]);
	memset(v, 0, sizeof(*v));
}

static struct run_delay_vcpu *vcpu_get(struct run_delay *r, const struct vcpu_span *span)
{
	bool fresh;
	uint32_t slot = lru_put(&r->vcpu_index, (uint64_t)span->vm << 32 | span->vcpu, &fresh);
	struct run_delay_vcpu *v = &r->vcpus[slot];

	if (fresh) {
		vcpu_clear(v);
		v->vm = span->vm;
		v->vcpu = span->vcpu;
	}
	return v;
}

static struct run_delay_pcpu *pcpu_get(struct run_delay *r, const struct vcpu_span *span)
{
	bool split = r->base.options.per_vcpu, fresh;
	struct run_delay_pcpu key = {
		.pcpu = span->pcpu, .vm = split ? span->vm : 0, .vcpu = split ? span->vcpu : 0};
	uint32_t slot =
		lru_put(&r->pcpu_index,
			(uint64_t)key.vm << 32 | (uint64_t)key.vcpu << 10 | key.pcpu, &fresh);

	if (fresh)
		r->pcpus[slot] = key;
	return &r->pcpus[slot];
}

/* Mixes what need not fit into one key. */
static uint64_t holder_key(const struct run_delay_holder *h)
{
	uint64_t where = (uint64_t)h->vm << 32 | (uint64_t)h->vcpu << 10 | h->pcpu;

	return where * 0x9e3779b97f4a7c15 ^ (uint64_t)h->quota << 32 ^ (uint32_t)h->pid;
}

/* Returns the sum of the holders of this VM, vCPU and pCPU that are not kept one by one. */
static struct run_delay_holder *others_get(struct run_delay *r, const struct run_delay_holder *h)
{
	const struct run_delay_holder key = {
		.vm = h->vm, .vcpu = h->vcpu, .pcpu = h->pcpu, .pid = RUN_DELAY_OTHERS};
	bool fresh;
	uint32_t slot = lru_put(&r->others_index, holder_key(&key), &fresh);

	if (fresh)
		r->others[slot] = key;
	return &r->others[slot];
}

static void holder_add(struct run_delay *r, const struct vcpu_span *span, int32_t pid, int64_t ns)
{
	struct run_delay_holder key = {.vm = span->vm,
				       .vcpu = r->base.options.per_vcpu ? span->vcpu : 0,
				       .pcpu = r->base.options.per_pcpu ? span->pcpu : 0,
				       .pid = pid,
				       .quota = pid == RUN_DELAY_QUOTA ? span->quota : 0};
	struct run_delay_holder *h;
	bool fresh;

	if (ns <= 0)
		return;
	if (pid == RUN_DELAY_OTHERS) {
		h = others_get(r, &key);
	} else {
		h = &r->holders[lru_put(&r->holder_index, holder_key(&key), &fresh)];
		if (fresh && h->held_ns) /* it made room for this one */
			others_get(r, h)->held_ns += h->held_ns;
		if (fresh)
			*h = key;
	}
	h->held_ns += ns;
	h->waits++;
}

static void holders_count(struct run_delay *r, const struct vcpu_span *span)
{
	/* The ring loses the oldest first: if the first is kept, all are. */
	bool crowd = span->n_crowd && crowd_at(span->crowd, span->crowd_first);
	int64_t others_ns = span->pcpu_busy_ns;

	if (span->end.ns - span->begin.ns < r->base.options.than_ns)
		return;
	holder_add(r, span, RUN_DELAY_QUOTA, span->throttled_ns);
	if (!crowd && span->holder_pid) {
		holder_add(r, span, span->holder_pid, span->holder_ns);
		others_ns -= span->holder_ns;
	}
	for (uint32_t i = 0; crowd && i < span->n_crowd; i++) {
		const struct vcpu_holder *h = crowd_at(span->crowd, span->crowd_first + i);

		holder_add(r, span, h->pid, h->ns);
		others_ns -= h->ns;
	}
	holder_add(r, span, RUN_DELAY_OTHERS, others_ns);
}

static void wait_count(struct run_delay *r, struct run_delay_vcpu *v, const struct vcpu_span *span)
{
	int64_t ns = span->end.ns - span->begin.ns;

	if (waits(span->state)) {
		v->waiting = true;
		v->wait_ns += ns;
		return;
	}
	if (v->waiting && v->cause_known && runs(span->state) &&
	    v->wait_ns >= r->base.options.than_ns &&
	    histogram_add(&v->waits[v->cause], (uint64_t)v->wait_ns))
		r->base.error = -ENOMEM;
	v->waiting = false;
	v->wait_ns = 0;
	v->cause_known = span->state != VCPU_UNKNOWN;
	v->cause = runs(span->state) ? RUN_DELAY_PREEMPTED : RUN_DELAY_WOKEN;
}

static void span_take(void *context, const struct vcpu_span *span)
{
	struct run_delay *r = context;
	struct run_delay_vcpu *v = vcpu_get(r, span);
	int64_t ns = span->end.ns - span->begin.ns;

	v->seen = true;
	v->state_ns[span->state] += ns;
	wait_count(r, v, span);
	if (span->pcpu >= VS_CPUS_MAX)
		return;
	if (runs(span->state)) {
		v->migrations += v->ran && v->ran_on != span->pcpu;
		v->ran = true;
		v->ran_on = span->pcpu;
		pcpu_get(r, span)->run_ns += ns;
	} else if (waits(span->state)) {
		pcpu_get(r, span)->wait_ns += ns;
		holders_count(r, span);
	}
}

static void run_delay_free(void *analysis)
{
	struct run_delay *r = analysis;

	if (!r)
		return;
	for (uint32_t slot = 0; slot < lru_slots(&r->vcpu_index); slot++)
		vcpu_clear(&r->vcpus[slot]);
	lru_fini(&r->vcpu_index);
	lru_fini(&r->pcpu_index);
	lru_fini(&r->holder_index);
	lru_fini(&r->others_index);
	free(r->vcpus);
	free(r->pcpus);
	free(r->holders);
	free(r->others);
	free(r);
}

static void *run_delay_new(struct model *m, const struct figures_options *options)
{
	struct run_delay *r = analysis_allocate(sizeof(*r), m, options);
	struct model_observer observer = {.vcpu_span = span_take, .context = r};

	if (!r)
		return NULL;
	r->vcpus = calloc(TABLE_ITEMS, sizeof(*r->vcpus));
	r->pcpus = calloc(TABLE_ITEMS, sizeof(*r->pcpus));
	r->holders = calloc(TABLE_ITEMS, sizeof(*r->holders));
	r->others = calloc(TABLE_ITEMS, sizeof(*r->others));
	if (!r->vcpus || !r->pcpus || !r->holders || !r->others ||
	    lru_init(&r->others_index, TABLE_ITEMS) || lru_init(&r->vcpu_index, TABLE_ITEMS) ||
	    lru_init(&r->pcpu_index, TABLE_ITEMS) || lru_init(&r->holder_index, TABLE_ITEMS) ||
	    model_observe(m, &observer)) {
		run_delay_free(r);
		return NULL;
	}
	return r;
}

static void run_delay_clear(void *analysis)
{
	struct run_delay *r = analysis;

	for (uint32_t slot = 0; slot < lru_slots(&r->vcpu_index); slot++) {
		struct run_delay_vcpu *v = &r->vcpus[slot];

		v->seen = false;
		v->migrations = 0;
		memset(v->state_ns, 0, sizeof(v->state_ns));
		for (int c = 0; c < RUN_DELAY_CAUSES; c++) {
			histogram_fini(&v->waits[c]);
			v->waits[c] = (struct histogram){0};
		}
	}
	memset(r->holders, 0, lru_slots(&r->holder_index) * sizeof(*r->holders));
	lru_clear(&r->pcpu_index);
	lru_clear(&r->holder_index);
	lru_clear(&r->others_index);
}

/* The slot of the index-th key in use; if there are fewer, reduces *index by their number. */
static uint32_t slot_at(const struct lru *l, size_t *index)
{
	for (uint32_t slot = 0; slot < lru_slots(l); slot++) {
		if (lru_used(l, slot) && !(*index)--)
			return slot;
	}
	return LRU_NONE;
}

const struct run_delay_vcpu *run_delay_vcpu(const struct run_delay *r, size_t index)
{
	uint32_t slot = slot_at(&r->vcpu_index, &index);

	return slot == LRU_NONE ? NULL : &r->vcpus[slot];
}

const struct run_delay_holder *run_delay_holder(const struct run_delay *r, size_t index)
{
	uint32_t slot = slot_at(&r->holder_index, &index);

	if (slot != LRU_NONE)
		return &r->holders[slot];
	slot = slot_at(&r->others_index, &index);
	return slot == LRU_NONE ? NULL : &r->others[slot];
}

const struct run_delay_pcpu *run_delay_pcpu(const struct run_delay *r, size_t index)
{
	uint32_t slot = slot_at(&r->pcpu_index, &index);

	return slot == LRU_NONE ? NULL : &r->pcpus[slot];
}

/* ---- table vcpu ---- */

static const struct figures_column vcpu_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{0, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"ran", "ran", TABLE_NS}},
	{0, {"run_delay", "waited", TABLE_NS}},
	{0, {"run_delay_share", "of both", TABLE_PERCENT}},
	{0, {"halted", "halted", TABLE_NS}},
	{0, {"blocked", "blocked", TABLE_NS}},
	{0, {"stopped", "stopped", TABLE_NS}},
	{0, {"unknown", "unknown", TABLE_NS}},
	{0, {"cause", "waits after", TABLE_TEXT}},
	{0, {"waits", "waits", TABLE_COUNT}},
	FIGURES_QUANTILES,
	{0, {"migrations", "migrations", TABLE_COUNT}},
};

static void vcpu_row(struct table *t, const struct model *m, const struct run_delay_vcpu *v,
		     enum run_delay_cause cause)
{
	static const char *const causes[] = {
		[RUN_DELAY_WOKEN] = "wake-up", [RUN_DELAY_PREEMPTED] = "preemption"};
	const int64_t *ns = v->state_ns;
	int64_t ran = ns[VCPU_GUEST] + ns[VCPU_KVM] + ns[VCPU_VMM];
	int64_t waited = ns[VCPU_RUNNABLE] + ns[VCPU_THROTTLED];

	table_row(t);
	table_text(t, model_vm_name(m, v->vm));
	table_count(t, v->vcpu);
	table_ns(t, ran);
	table_ns(t, waited);
	table_percent(t, figures_percent(waited, ran + waited));
	table_ns(t, ns[VCPU_HALTED]);
	table_ns(t, ns[VCPU_BLOCKED]);
	table_ns(t, ns[VCPU_STOPPED]);
	table_ns(t, ns[VCPU_UNKNOWN]);
	table_text(t, causes[cause]);
	table_count(t, v->waits[cause].count);
	figures_quantiles(t, &v->waits[cause]);
	table_count(t, v->migrations);
}

static int vcpu_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct run_delay_vcpu *v;

	for (size_t i = 0; (v = run_delay_vcpu(analysis, i)); i++) {
		for (int cause = 0; v->seen && cause < RUN_DELAY_CAUSES; cause++)
			vcpu_row(t, view->model, v, cause);
	}
	return 0;
}

/* ---- table pcpu ---- */

static const struct figures_column pcpu_columns[] = {
	{0, {"pcpu", "pCPU", TABLE_COUNT}},
	{FIGURES_PER_VCPU, {"vm", "VM", TABLE_TEXT}},
	{FIGURES_PER_VCPU, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"ran", "vCPUs ran", TABLE_NS}},
	{0, {"run_delay", "vCPUs waited", TABLE_NS}},
	{0, {"run_delay_share", "of both", TABLE_PERCENT}},
};

static int pcpu_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct run_delay_pcpu *p;

	for (size_t i = 0; (p = run_delay_pcpu(analysis, i)); i++) {
		table_row(t);
		table_count(t, p->pcpu);
		if (view->per == FIGURES_PER_VCPU) {
			table_text(t, model_vm_name(view->model, p->vm));
			table_count(t, p->vcpu);
		}
		table_ns(t, p->run_ns);
		table_ns(t, p->wait_ns);
		table_percent(t, figures_percent(p->wait_ns, p->run_ns + p->wait_ns));
	}
	return 0;
}

/* ---- summaries ---- */

static int run_delay_histograms(void *analysis, analysis_histogram_take *take, void *context)
{
	static const char *const names[] = {[RUN_DELAY_WOKEN] = "run_delay.wakeup",
					    [RUN_DELAY_PREEMPTED] = "run_delay.preempted"};
	const struct run_delay_vcpu *v;
	int err = 0;

	for (size_t i = 0; !err && (v = run_delay_vcpu(analysis, i)); i++) {
		for (int cause = 0; cause < RUN_DELAY_CAUSES && !err; cause++)
			err = take(context, names[cause], &v->waits[cause]);
	}
	return err;
}

static const struct figures_kind tables[] = {
	{"vcpu", "How long vCPUs ran, waited for a pCPU and slept", FIGURES_COLUMNS(vcpu_columns),
	 "run_delay", false, FIGURES_PER_VCPU, FIGURES_PER_VCPU, true, vcpu_fill},
	{"pcpu", "On which pCPU they ran and waited", FIGURES_COLUMNS(pcpu_columns), "run_delay",
	 false, FIGURES_PER_PCPU | FIGURES_PER_VCPU, FIGURES_PER_PCPU, false, pcpu_fill},
	{"culprits", "Which host tasks held a pCPU that a vCPU waited for", culprit_columns,
	 CULPRIT_COLUMNS, "held", false,
	 FIGURES_PER_TASK | FIGURES_PER_VCPU | FIGURES_PER_PCPU | FIGURES_PER_PROCESS |
		 FIGURES_PER_CGROUP,
	 FIGURES_PER_TASK, true, culprits_fill},
	{.name = NULL},
};

const struct analysis run_delay_analysis = {
	.name = "run_delay",
	.new = run_delay_new,
	.free = run_delay_free,
	.clear = run_delay_clear,
	.error = analysis_error,
	.histograms = run_delay_histograms,
	.tables = tables,
};
