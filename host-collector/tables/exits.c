/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/tables/exits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/exit_name.h"
#include "host-collector/tables/figures.h"
#include "host-collector/util/lru.h"

enum { REASONS_MAX = 16384, VCPUS_MAX = 4096, COUNTED_MAX = 4096 };

/* The exit that a vCPU is in. */
struct exit_open {
	struct vcpu_exit exit;
	int64_t state_ns[VCPU_STATE_COUNT];
};

struct exits {
	struct analysis_base base;
	struct lru reason_index, total_index, vcpu_index, counted_index;
	struct message_exit_cell *counted; /* the totals that came last; NULL: none came */
	struct exit_reason *reasons;
	int64_t *totals; /* ns */
	struct exit_open *open;
};

static void reason_clear(struct exit_reason *r)
{
	histogram_fini(&r->handling);
	memset(r, 0, sizeof(*r));
}

static struct exit_reason *reason_get(struct exits *x, uint32_t vm, uint32_t vcpu,
				      const struct vcpu_exit *exit)
{
	uint32_t kept = x->base.options.per_vcpu ? vcpu : 0;
	uint64_t key = (uint64_t)vm << 46 | (uint64_t)kept << 36 | (uint64_t)(exit->isa & 3) << 32 |
		       exit->reason;
	struct exit_reason *r;
	bool fresh;

	r = &x->reasons[lru_put(&x->reason_index, key, &fresh)];
	if (fresh) {
		reason_clear(r);
		r->vm = vm;
		r->vcpu = kept;
		r->reason = exit->reason;
		r->isa = exit->isa;
	}
	return r;
}

static void total_add(struct exits *x, uint32_t vm, uint32_t vcpu, int64_t ns)
{
	uint32_t kept = x->base.options.per_vcpu ? vcpu : 0;
	bool fresh;
	uint32_t slot = lru_put(&x->total_index, (uint64_t)vm << 32 | kept, &fresh);

	x->totals[slot] = fresh ? ns : x->totals[slot] + ns;
}

static void exit_end(struct exits *x, const struct vcpu_span *next, const struct exit_open *o,
		     bool whole)
{
	const int64_t *ns = o->state_ns;
	int64_t handling_ns = ns[VCPU_KVM] + ns[VCPU_VMM];
	struct exit_reason *r;

	whole = whole && !ns[VCPU_UNKNOWN];
	if (whole)
		total_add(x, next->vm, next->vcpu, handling_ns);
	if (whole && handling_ns < x->base.options.than_ns)
		return;
	r = reason_get(x, next->vm, next->vcpu, &o->exit);
	if (!whole) {
		r->torn++;
		return;
	}
	r->kernel_ns += ns[VCPU_KVM];
	r->vmm_ns += ns[VCPU_VMM];
	r->scheduled_out_ns += ns[VCPU_RUNNABLE] + ns[VCPU_THROTTLED] + ns[VCPU_STOPPED];
	r->slept_ns += ns[VCPU_HALTED] + ns[VCPU_BLOCKED];
	if (histogram_add(&r->handling, (uint64_t)handling_ns))
		x->base.error = -ENOMEM;
}

static void span_take(void *context, const struct vcpu_span *span)
{
	struct exits *x = context;
	struct exit_open *o;
	bool fresh;

	o = &x->open[lru_put(&x->vcpu_index, (uint64_t)span->vm << 32 | span->vcpu, &fresh)];
	if (fresh)
		memset(o, 0, sizeof(*o));
	if (o->exit.serial && o->exit.serial != span->exit.serial)
		exit_end(x, span, o, span->state == VCPU_GUEST);
	if (o->exit.serial != span->exit.serial)
		*o = (struct exit_open){.exit = span->exit};
	if (span->exit.serial)
		o->state_ns[span->state] += span->end.ns - span->begin.ns;
}

/* `now` less `last`: what was counted meanwhile. */
static void delta_count(struct exits *x, uint32_t vm, const struct message_exit_cell *now,
			const struct message_exit_cell *last)
{
	const struct vcpu_exit exit = {.isa = now->isa, .reason = now->reason};
	int64_t kernel_ns = (int64_t)(now->kernel_ns - last->kernel_ns);
	int64_t vmm_ns = (int64_t)(now->vmm_ns - last->vmm_ns);
	struct exit_reason *r = NULL;
	double all = 0, long_enough = 0;

	total_add(x, vm, now->vcpu, kernel_ns + vmm_ns);
	for (uint32_t i = 0; i < VS_EXIT_BUCKETS; i++) {
		uint64_t count = now->buckets[i] - last->buckets[i];
		uint64_t middle = exit_bucket_middle_ns(i);

		all += (double)count * (double)middle;
		if (!count || (int64_t)middle < x->base.options.than_ns)
			continue;
		long_enough += (double)count * (double)middle;
		if (!r)
			r = reason_get(x, vm, now->vcpu, &exit);
		if (histogram_add_many(&r->handling, middle, count))
			x->base.error = -ENOMEM;
	}
	if (!r)
		return;
	/* The parts are not known by length: of --than they get their share. */
	if (x->base.options.than_ns > 0 && all > 0) {
		kernel_ns = (int64_t)((double)kernel_ns * long_enough / all);
		vmm_ns = (int64_t)((double)vmm_ns * long_enough / all);
	}
	r->kernel_ns += kernel_ns;
	r->vmm_ns += vmm_ns;
	if (now->max_ns > r->handling.max_ns)
		r->handling.max_ns = now->max_ns;
}

static bool counted_ready(struct exits *x)
{
	if (!x->counted && !lru_init(&x->counted_index, COUNTED_MAX))
		x->counted = calloc(COUNTED_MAX, sizeof(*x->counted));
	return x->counted;
}

static void counted_take(void *context, const struct message_exit_summary *m)
{
	struct exits *x = context;

	if (!counted_ready(x)) {
		x->base.error = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < m->n_cells; i++) {
		const struct message_exit_cell *now = &m->cells[i];
		uint64_t key = (uint64_t)m->vm << 46 | (uint64_t)now->vcpu << 34 |
			       (uint64_t)(now->isa & 3) << 32 | now->reason;
		struct message_exit_cell *last;
		bool fresh;

		last = &x->counted[lru_put(&x->counted_index, key, &fresh)];
		if (fresh || now->count < last->count)
			memset(last, 0, sizeof(*last));
		delta_count(x, m->vm, now, last);
		*last = *now;
	}
}

static void exits_free(void *analysis)
{
	struct exits *x = analysis;

	if (!x)
		return;
	for (uint32_t slot = 0; slot < lru_slots(&x->reason_index); slot++)
		reason_clear(&x->reasons[slot]);
	lru_fini(&x->reason_index);
	lru_fini(&x->total_index);
	lru_fini(&x->vcpu_index);
	lru_fini(&x->counted_index);
	free(x->counted);
	free(x->reasons);
	free(x->totals);
	free(x->open);
	free(x);
}

static void *exits_new(struct model *m, const struct figures_options *options)
{
	struct exits *x = analysis_allocate(sizeof(*x), m, options);
	struct model_observer observer = {
		.vcpu_span = span_take, .exits_counted = counted_take, .context = x};

	if (!x)
		return NULL;
	x->reasons = calloc(REASONS_MAX, sizeof(*x->reasons));
	x->totals = calloc(VCPUS_MAX, sizeof(*x->totals));
	x->open = calloc(VCPUS_MAX, sizeof(*x->open));
	if (!x->reasons || !x->totals || !x->open || lru_init(&x->reason_index, REASONS_MAX) ||
	    lru_init(&x->total_index, VCPUS_MAX) || lru_init(&x->vcpu_index, VCPUS_MAX) ||
	    model_observe(m, &observer)) {
		exits_free(x);
		return NULL;
	}
	return x;
}

static void exits_clear(void *analysis)
{
	struct exits *x = analysis;

	lru_clear(&x->reason_index);
	lru_clear(&x->total_index);
}

const struct exit_reason *exits_reason(const struct exits *x, size_t index)
{
	for (uint32_t slot = 0; slot < lru_slots(&x->reason_index); slot++) {
		if (lru_used(&x->reason_index, slot) && !index--)
			return &x->reasons[slot];
	}
	return NULL;
}

int64_t exits_handling_ns(const struct exits *x, uint32_t vm, uint32_t vcpu)
{
	uint32_t slot = lru_find(&x->total_index, (uint64_t)vm << 32 | vcpu);

	return slot == LRU_NONE ? 0 : x->totals[slot];
}

/* ---- table exits ---- */

static const struct figures_column exit_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},           {FIGURES_PER_VCPU, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"reason", "reason", TABLE_TEXT}},   {0, {"meaning", "that is", TABLE_TEXT}},
	{0, {"count", "exits", TABLE_COUNT}},    {0, {"total", "handled for", TABLE_NS}},
	{0, {"share", "of all", TABLE_PERCENT}}, {0, {"kernel", "in KVM", TABLE_NS}},
	{0, {"vmm", "in VMM", TABLE_NS}},        {0, {"scheduled_out", "scheduled out", TABLE_NS}},
	{0, {"slept", "slept", TABLE_NS}},       {0, {"min", "min", TABLE_NS}},
	{0, {"avg", "avg", TABLE_NS}},           FIGURES_QUANTILES,
	{0, {"torn", "torn", TABLE_COUNT}},
};

static void exit_row(void *analysis, const struct exit_reason *e, const struct figures_view *view,
		     struct table *t)
{
	const struct histogram *h = &e->handling;
	struct exit_name name = exit_name(e->isa, e->reason);
	int64_t total = e->kernel_ns + e->vmm_ns;

	table_row(t);
	table_text(t, model_vm_name(view->model, e->vm));
	if (view->per == FIGURES_PER_VCPU)
		table_count(t, e->vcpu);
	table_text(t, name.text);
	table_text(t, name.meaning);
	table_count(t, h->count);
	table_ns(t, total);
	table_percent(t, figures_percent(total, exits_handling_ns(analysis, e->vm, e->vcpu)));
	table_ns(t, e->kernel_ns);
	table_ns(t, e->vmm_ns);
	table_ns(t, e->scheduled_out_ns);
	table_ns(t, e->slept_ns);
	table_ns(t, figures_clip(h->min_ns));
	table_ns(t, h->count ? total / figures_clip(h->count) : 0);
	figures_quantiles(t, h);
	table_count(t, e->torn);
}

static int exit_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct exit_reason *e;

	for (size_t i = 0; (e = exits_reason(analysis, i)); i++)
		exit_row(analysis, e, view, t);
	return 0;
}

/* ---- summaries ---- */

static int exits_histograms(void *analysis, analysis_histogram_take *take, void *context)
{
	const struct exit_reason *r;
	int err = 0;

	for (size_t i = 0; !err && (r = exits_reason(analysis, i)); i++) {
		char name[64];

		err = take(context, "exits", &r->handling);
		snprintf(name, sizeof(name), "exit.%s", exit_name(r->isa, r->reason).text);
		if (!err)
			err = take(context, name, &r->handling);
	}
	return err;
}

static const struct figures_kind tables[] = {
	{"exits", "Why vCPUs left the guest, and where the time went",
	 FIGURES_COLUMNS(exit_columns), "total", false, FIGURES_PER_VCPU, 0, true, exit_fill},
	{.name = NULL},
};

const struct analysis exits_analysis = {
	.name = "exits",
	.new = exits_new,
	.free = exits_free,
	.clear = exits_clear,
	.error = analysis_error,
	.histograms = exits_histograms,
	.tables = tables,
};
