/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables of interrupts from source to handler: chains, delays, slowest, overdue. */
#include <errno.h>
#include <stdlib.h>

#include "host-collector/tables/chains.h"
#include "host-collector/tables/figures.h"

static void *chains_start(struct model *m, const struct figures_options *options)
{
	/* What is late or lost does not depend on --than, which only chooses rows. */
	const struct chain_options chosen = {.merge_vcpus = !options->per_vcpu};

	return chains_new(m, &chosen);
}

static void chains_end(void *analysis)
{
	chains_free(analysis);
}

static void chains_reset(void *analysis)
{
	chains_clear(analysis);
}

static void chains_settle(void *analysis)
{
	chains_finish(analysis);
}

static void vector(struct table *t, uint8_t number)
{
	char text[8];

	snprintf(text, sizeof(text), "0x%02x", number);
	if (number)
		table_text(t, text);
	else
		table_none(t);
}

static void irq(struct table *t, int32_t number)
{
	if (number < 0)
		table_none(t);
	else
		table_count(t, (uint64_t)number);
}

static int chains_problem(const void *analysis)
{
	return chains_error(analysis);
}

/* ---- table chains: stage by stage ---- */

#define CHAIN_COLUMNS                                                                              \
	{0, {"vm", "VM", TABLE_TEXT}}, {FIGURES_PER_VCPU, {"vcpu", "vCPU", TABLE_COUNT}},          \
		{0, {"source", "source", TABLE_TEXT}}, {0, {"vector", "vector", TABLE_TEXT}},      \
	{                                                                                          \
		0,                                                                                 \
		{                                                                                  \
			"irq", "irq", TABLE_COUNT                                                  \
		}                                                                                  \
	}

static void group_cells(struct table *t, const struct chain_group *g,
			const struct figures_view *view)
{
	table_row(t);
	table_text(t, model_vm_name(view->model, g->vm));
	if (view->per == FIGURES_PER_VCPU && g->vcpu == CHAIN_NO_VCPU)
		table_none(t);
	else if (view->per == FIGURES_PER_VCPU)
		table_count(t, g->vcpu);
	table_text(t, chain_source_name(g->source));
	vector(t, g->vector);
	irq(t, g->irq);
}

static const struct figures_column stage_columns[] = {
	CHAIN_COLUMNS,
	{0, {"stage", "stage", TABLE_TEXT}},
	{0, {"count", "count", TABLE_COUNT}},
	{0, {"total", "total", TABLE_NS}},
	{0, {"min", "min", TABLE_NS}},
	FIGURES_QUANTILES,
};

static void stage_row(struct table *t, const struct chain_group *g, enum chain_stage stage,
		      const struct figures_view *view)
{
	const struct histogram *h = &g->stages[stage];

	group_cells(t, g, view);
	table_text(t, chain_stage_name(stage));
	table_count(t, h->count);
	if (h->count) {
		table_ns(t, figures_clip(h->sum_ns));
		table_ns(t, figures_clip(h->min_ns));
		figures_quantiles(t, h);
		return;
	}
	for (int i = 0; i < 7; i++)
		table_none(t);
}

/* By falling time to the handler; of what has no handler, by how many there were. */
static int group_compare(const void *a, const void *b)
{
	const struct chain_group *x = *(const struct chain_group *const *)a;
	const struct chain_group *y = *(const struct chain_group *const *)b;
	uint64_t p = x->stages[CHAIN_STAGE_LATENCY].sum_ns,
		 q = y->stages[CHAIN_STAGE_LATENCY].sum_ns;

	if (p == q)
		return (x->half < y->half) - (x->half > y->half);
	return p < q ? 1 : -1;
}

static bool group_has(const struct chain_group *g, int64_t than_ns)
{
	for (int s = 0; s < CHAIN_STAGE_COUNT; s++) {
		if (g->stages[s].count && (int64_t)g->stages[s].max_ns >= than_ns)
			return true;
	}
	return false;
}

/* The stages of one source and vector stay together, and --top counts these. */
static int stage_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct chain_group **groups, *g;
	size_t n = 0, cut = 0;

	while (chains_group(analysis, n))
		n++;
	groups = calloc(n + 1, sizeof(struct chain_group *));
	if (!groups)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; (g = chains_group(analysis, i)); i++) {
		if (group_has(g, view->than_ns))
			groups[n++] = g;
	}
	if (n)
		qsort(groups, n, sizeof(struct chain_group *), group_compare);
	for (size_t i = 0; i < n; i++) {
		for (int s = 0; s < CHAIN_STAGE_COUNT; s++) {
			if ((int64_t)groups[i]->stages[s].max_ns < view->than_ns)
				continue;
			if (view->top && i >= view->top)
				cut++;
			else
				stage_row(t, groups[i], (enum chain_stage)s, view);
		}
	}
	table_cut(t, cut);
	free(groups);
	return 0;
}

/* ---- table delays: how many, and where the time to the handler went ---- */

static const struct figures_column delay_columns[] = {
	CHAIN_COLUMNS,
	{0, {"handled", "handled", TABLE_COUNT}},
	{0, {"total", "to the handler", TABLE_NS}},
	{0, {"not_scheduled", "not scheduled", TABLE_NS}},
	{0, {"asleep", "waking", TABLE_NS}},
	{0, {"exit_handling", "in exits", TABLE_NS}},
	{0, {"interrupts_off", "guest had them off", TABLE_NS}},
	{0, {"delivery", "delivery", TABLE_NS}},
	{0, {"unknown", "unknown", TABLE_NS}},
	{0, {"handler", "in the handler", TABLE_NS}},
	{0, {"late", "late", TABLE_COUNT}},
	{0, {"lost", "lost", TABLE_COUNT}},
	{0, {"coalesced", "coalesced", TABLE_COUNT}},
	{0, {"posted", "posted", TABLE_COUNT}},
	{0, {"half", "no handler seen", TABLE_COUNT}},
	{0, {"torn", "torn", TABLE_COUNT}},
	{0, {"beyond_error", "out of order", TABLE_COUNT}},
	{0, {"not_accepted", "not accepted", TABLE_COUNT}},
	{0, {"moved", "moved", TABLE_COUNT}},
};

static int delay_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct chain_group *g;

	for (size_t i = 0; (g = chains_group(analysis, i)); i++) {
		if ((int64_t)g->stages[CHAIN_STAGE_LATENCY].max_ns < view->than_ns && !g->late &&
		    !g->lost)
			continue;
		group_cells(t, g, view);
		table_count(t, g->handled);
		table_ns(t, figures_clip(g->stages[CHAIN_STAGE_LATENCY].sum_ns));
		for (int p = 0; p < CHAIN_PLACE_COUNT; p++)
			table_ns(t, g->place_ns[p]);
		table_ns(t, figures_clip(g->stages[CHAIN_STAGE_HANDLE].sum_ns));
		table_count(t, g->late);
		table_count(t, g->lost);
		table_count(t, g->coalesced);
		table_count(t, g->posted);
		table_count(t, g->half);
		table_count(t, g->torn);
		table_count(t, g->beyond);
		table_count(t, g->ignored);
		table_count(t, g->moved);
	}
	return 0;
}

/* ---- table slowest: single chains in full ---- */

static const struct figures_column slowest_columns[] = {
	{0, {"begin", "began at", TABLE_TIME}},
	{0, {"vm", "VM", TABLE_TEXT}},
	{0, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"source", "source", TABLE_TEXT}},
	{0, {"vector", "vector", TABLE_TEXT}},
	{0, {"irq", "irq", TABLE_COUNT}},
	{0, {"error", "+-", TABLE_NS}},
#define X(NAME, name, ...) {0, {name, name, TABLE_NS}},
	CHAIN_STAGES(X)
#undef X
		{0, {"not_scheduled", "not scheduled", TABLE_NS}},
	{0, {"asleep", "waking", TABLE_NS}},
	{0, {"exit_handling", "in exits", TABLE_NS}},
	{0, {"interrupts_off", "guest had them off", TABLE_NS}},
	{0, {"delivery", "delivery", TABLE_NS}},
	{0, {"unknown", "unknown", TABLE_NS}},
	{0, {"coalesced", "coalesced", TABLE_COUNT}},
	{0, {"raiser", "raised by", TABLE_TEXT}},
};

static void slowest_row(struct table *t, const struct chain *c, const struct figures_view *view)
{
	int64_t ns;

	table_row(t);
	table_time(t, c->begin.ns);
	table_text(t, model_vm_name(view->model, c->vm));
	table_count(t, c->vcpu);
	table_text(t, chain_source_name(c->source));
	vector(t, c->vector);
	irq(t, c->irq);
	table_ns(t, (int64_t)c->host_err_ns + c->guest_err_ns);
	for (int s = 0; s < CHAIN_STAGE_COUNT; s++) {
		if (chain_stage_ns(c, (enum chain_stage)s, &ns))
			table_ns(t, ns);
		else
			table_none(t);
	}
	for (int p = 0; p < CHAIN_PLACE_COUNT; p++)
		table_ns(t, c->place_ns[p]);
	table_count(t, c->coalesced);
	table_text(t, model_task_name(view->model, VS_SOURCE_HOST, c->raiser));
}

static int slowest_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct chain *c;
	int64_t ns;

	for (size_t i = 0; (c = chains_worst(analysis, i)); i++) {
		if (chain_stage_ns(c, CHAIN_STAGE_LATENCY, &ns) && ns >= view->than_ns)
			slowest_row(t, c, view);
	}
	return 0;
}

/* ---- table overdue: single interrupts that were lost or late ---- */

static const struct figures_column overdue_columns[] = {
	{0, {"what", "what", TABLE_TEXT}},
	{0, {"begin", "began at", TABLE_TIME}},
	{0, {"overdue", "pending for", TABLE_NS}},
	{0, {"vm", "VM", TABLE_TEXT}},
	{0, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"source", "source", TABLE_TEXT}},
	{0, {"vector", "vector", TABLE_TEXT}},
	{0, {"irq", "irq", TABLE_COUNT}},
	{0, {"raiser", "raised by", TABLE_TEXT}},
	{0, {"guest_went_on", "guest went on", TABLE_COUNT}},
	{0, {"meanwhile", "meanwhile", TABLE_TEXT}},
};

/* What its vCPU did most of the time. */
static const char *meanwhile(const struct chain_trouble *trouble)
{
	static const char *const texts[CHAIN_PLACE_COUNT] = {
		[CHAIN_PLACE_NOT_SCHEDULED] = "the vCPU waited for a pCPU",
		[CHAIN_PLACE_ASLEEP] = "the vCPU slept",
		[CHAIN_PLACE_EXIT_HANDLING] = "an exit was handled",
		[CHAIN_PLACE_INTERRUPTS_OFF] = "the guest had interrupts off",
		[CHAIN_PLACE_DELIVERY] = "the guest ran",
		[CHAIN_PLACE_UNKNOWN] = "not known",
	};
	int most = CHAIN_PLACE_UNKNOWN;

	if (trouble->kind == CHAIN_LOST)
		return trouble->halted ? "the vCPU halted" : "the guest went on";
	for (int p = 0; p < CHAIN_PLACE_COUNT; p++) {
		if (trouble->chain.place_ns[p] > trouble->chain.place_ns[most])
			most = p;
	}
	return texts[most];
}

static int overdue_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct chain_trouble *trouble;

	for (size_t i = 0; (trouble = chains_trouble(analysis, i)); i++) {
		const struct chain *c = &trouble->chain;
		struct host_ns until = trouble->open ? view->until : trouble->until;

		if (until.ns - c->begin.ns < view->than_ns)
			continue;
		table_row(t);
		table_text(t, trouble->kind == CHAIN_LATE ? "late"
			      : trouble->open             ? "lost"
							  : "lost, then found");
		table_time(t, c->begin.ns);
		table_ns(t, until.ns - c->begin.ns);
		table_text(t, model_vm_name(view->model, c->vm));
		table_count(t, c->vcpu);
		table_text(t, chain_source_name(c->source));
		vector(t, c->vector);
		irq(t, c->irq);
		table_text(t, model_task_name(view->model, VS_SOURCE_HOST, c->raiser));
		if (trouble->kind == CHAIN_LOST)
			table_count(t, trouble->progress);
		else
			table_none(t);
		table_text(t, meanwhile(trouble));
	}
	return 0;
}

/* ---- summaries ---- */

static int chains_histograms(void *analysis, analysis_histogram_take *take, void *context)
{
	const struct chain_group *g;
	int err = 0;

	for (size_t i = 0; !err && (g = chains_group(analysis, i)); i++) {
		for (int stage = 0; stage < CHAIN_STAGE_COUNT && !err; stage++) {
			char name[64];

			snprintf(name, sizeof(name), "irq.%s.%s", chain_source_name(g->source),
				 chain_stage_name((enum chain_stage)stage));
			err = take(context, name, &g->stages[stage]);
		}
	}
	return err;
}

static const struct figures_kind tables[] = {
	{"chains", "How long each stage of an interrupt's way took", FIGURES_COLUMNS(stage_columns),
	 NULL, false, FIGURES_PER_VECTOR | FIGURES_PER_VCPU, FIGURES_PER_VECTOR, true, stage_fill},
	{"delays", "Where the time went until the handler", FIGURES_COLUMNS(delay_columns), "total",
	 false, FIGURES_PER_VECTOR | FIGURES_PER_VCPU, FIGURES_PER_VECTOR, true, delay_fill},
	{"slowest", "The slowest interrupts in full", FIGURES_COLUMNS(slowest_columns), "latency",
	 true, FIGURES_PER_VECTOR | FIGURES_PER_VCPU, FIGURES_PER_VECTOR, true, slowest_fill},
	{"overdue", "Interrupts that were lost, or handled late", FIGURES_COLUMNS(overdue_columns),
	 "overdue", false, FIGURES_PER_VECTOR | FIGURES_PER_VCPU, FIGURES_PER_VECTOR, true,
	 overdue_fill},
	{.name = NULL},
};

const struct analysis chains_analysis = {
	.name = "chains",
	.new = chains_start,
	.free = chains_end,
	.clear = chains_reset,
	.finish = chains_settle,
	.error = chains_problem,
	.histograms = chains_histograms,
	.tables = tables,
};
