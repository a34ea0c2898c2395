/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/tables/interrupts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/tables/figures.h"
#include "host-collector/util/lru.h"

enum {
	SOURCES_MAX = 4096,
	WINDOWS_MAX = 4096,
	STORM_PER_SECOND = 2000,
	STORM_PERCENT = 60,
};

/* One source on one guest CPU, now. */
struct window {
	uint32_t source; /* slot... */
	uint64_t key;    /* ... if it still has this key */
	int64_t number;  /* begin / INTERRUPTS_WINDOW_NS */
	uint64_t count;
	int64_t ns;
};

struct interrupts {
	struct analysis_base base;
	struct lru index, window_index;
	struct interrupt_source *sources;
	struct window *windows;
};

static void source_clear(struct interrupt_source *s)
{
	histogram_fini(&s->durations);
	memset(s, 0, sizeof(*s));
}

static uint64_t source_key(const struct guest_interrupt *i, uint16_t cpu)
{
	return (uint64_t)i->vm << 44 | (uint64_t)cpu << 34 |
	       (uint64_t)(i->kind == GUEST_CPU_SOFTIRQ) << 33 | (uint64_t)i->vector << 32 |
	       i->number;
}

static void window_close(struct interrupts *x, struct window *w)
{
	struct interrupt_source *s = &x->sources[w->source];

	if (!w->count || !lru_used(&x->index, w->source) || lru_key(&x->index, w->source) != w->key)
		return;
	if (w->ns > INTERRUPTS_WINDOW_NS)
		w->ns = INTERRUPTS_WINDOW_NS;
	if (w->count > s->peak_count)
		s->peak_count = w->count;
	if (w->ns > s->peak_ns)
		s->peak_ns = w->ns;
	if (w->count >= STORM_PER_SECOND * INTERRUPTS_WINDOW_NS / 1000000000 &&
	    w->ns >= INTERRUPTS_WINDOW_NS * STORM_PERCENT / 100)
		s->storm_ns += INTERRUPTS_WINDOW_NS;
	w->count = 0;
	w->ns = 0;
}

static void window_count(struct interrupts *x, const struct guest_interrupt *i, uint32_t source)
{
	int64_t number = i->begin.ns / INTERRUPTS_WINDOW_NS;
	struct window *w;
	bool fresh;

	w = &x->windows[lru_put(&x->window_index, source_key(i, i->cpu), &fresh)];
	if (fresh)
		*w = (struct window){.number = number};
	/* An interrupted handler began before the one that interrupted it, but is reported later.
	 */
	if (number > w->number) {
		window_close(x, w);
		w->number = number;
	}
	w->source = source;
	w->key = lru_key(&x->index, source);
	w->count++;
	w->ns += i->end.ns - i->begin.ns;
}

static void interrupt_take(void *context, const struct guest_interrupt *i)
{
	struct interrupts *x = context;
	int64_t ns = i->end.ns - i->begin.ns;
	uint16_t cpu = x->base.options.per_vcpu ? i->cpu : 0;
	struct interrupt_source *s;
	uint32_t slot;
	bool fresh;

	if (ns < x->base.options.than_ns)
		return;
	slot = lru_put(&x->index, source_key(i, cpu), &fresh);
	s = &x->sources[slot];
	if (fresh) {
		source_clear(s);
		s->vm = i->vm;
		s->cpu = cpu;
		s->kind = i->kind;
		s->number = i->number;
		s->vector = i->vector;
	}
	if (!i->whole) {
		s->torn++;
		return;
	}
	window_count(x, i, slot);
	if (histogram_add(&s->durations, (uint64_t)ns))
		x->base.error = -ENOMEM;
}

static void interrupts_free(void *analysis)
{
	struct interrupts *x = analysis;

	if (!x)
		return;
	for (uint32_t slot = 0; slot < lru_slots(&x->index); slot++)
		source_clear(&x->sources[slot]);
	lru_fini(&x->index);
	lru_fini(&x->window_index);
	free(x->sources);
	free(x->windows);
	free(x);
}

static void *interrupts_new(struct model *m, const struct figures_options *options)
{
	struct interrupts *x = analysis_allocate(sizeof(*x), m, options);
	struct model_observer observer = {.guest_interrupt = interrupt_take, .context = x};

	if (!x)
		return NULL;
	x->sources = calloc(SOURCES_MAX, sizeof(*x->sources));
	x->windows = calloc(WINDOWS_MAX, sizeof(*x->windows));
	if (!x->sources || !x->windows || lru_init(&x->index, SOURCES_MAX) ||
	    lru_init(&x->window_index, WINDOWS_MAX) || model_observe(m, &observer)) {
		interrupts_free(x);
		return NULL;
	}
	return x;
}

static void interrupts_clear(void *analysis)
{
	struct interrupts *x = analysis;

	lru_clear(&x->index);
	for (uint32_t slot = 0; slot < lru_slots(&x->window_index); slot++)
		x->windows[slot].count = 0;
}

static void interrupts_finish(void *analysis)
{
	struct interrupts *x = analysis;

	for (uint32_t slot = 0; slot < lru_slots(&x->window_index); slot++) {
		if (lru_used(&x->window_index, slot))
			window_close(x, &x->windows[slot]);
	}
}

const struct interrupt_source *interrupts_source(const struct interrupts *x, size_t index)
{
	for (uint32_t slot = 0; slot < lru_slots(&x->index); slot++) {
		if (lru_used(&x->index, slot) && !index--)
			return &x->sources[slot];
	}
	return NULL;
}

/* ---- table irq ---- */

static const struct figures_column irq_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{FIGURES_PER_VCPU, {"guest_cpu", "guest CPU", TABLE_COUNT}},
	{0, {"kind", "kind", TABLE_TEXT}},
	{0, {"number", "number", TABLE_COUNT}},
	{0, {"name", "name", TABLE_TEXT}},
	{0, {"count", "count", TABLE_COUNT}},
	{0, {"rate", "a second", TABLE_COUNT}},
	{0, {"total", "total", TABLE_NS}},
	{0, {"share", "of a CPU", TABLE_PERCENT}},
	FIGURES_QUANTILES,
	{0, {"peak_rate", "peak a second", TABLE_COUNT}},
	{0, {"peak_share", "peak of a CPU", TABLE_PERCENT}},
	{0, {"storm", "storms", TABLE_NS}},
	{0, {"torn", "torn", TABLE_COUNT}},
};

static uint64_t rate(uint64_t count, int64_t ns)
{
	return ns > 0 ? (uint64_t)((double)count * 1e9 / (double)ns + 0.5) : 0;
}

static void irq_row(const struct interrupt_source *s, const struct figures_view *view,
		    struct table *t)
{
	char name[32];

	interrupt_name(s->kind, s->vector, s->number, name, sizeof(name));
	table_row(t);
	table_text(t, model_vm_name(view->model, s->vm));
	if (view->per == FIGURES_PER_VCPU)
		table_count(t, s->cpu);
	table_text(t, s->kind == GUEST_CPU_SOFTIRQ ? "softirq" : s->vector ? "vector" : "irq");
	table_count(t, s->number);
	table_text(t, name);
	table_count(t, s->durations.count);
	table_count(t, rate(s->durations.count, view->span_ns));
	table_ns(t, figures_clip(s->durations.sum_ns));
	table_percent(t, figures_percent(figures_clip(s->durations.sum_ns), view->span_ns));
	figures_quantiles(t, &s->durations);
	table_count(t, rate(s->peak_count, INTERRUPTS_WINDOW_NS));
	table_percent(t, figures_percent(s->peak_ns, INTERRUPTS_WINDOW_NS));
	table_ns(t, s->storm_ns);
	table_count(t, s->torn);
}

static int irq_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct interrupt_source *s;

	interrupts_finish(analysis);
	for (size_t i = 0; (s = interrupts_source(analysis, i)); i++)
		irq_row(s, view, t);
	return 0;
}

/* ---- summaries ---- */

static int interrupts_histograms(void *analysis, analysis_histogram_take *take, void *context)
{
	const struct interrupt_source *s;
	int err = 0;

	for (size_t i = 0; !err && (s = interrupts_source(analysis, i)); i++)
		err = take(context,
			   s->kind == GUEST_CPU_SOFTIRQ ? "handler.softirq" : "handler.hardirq",
			   &s->durations);
	return err;
}

static const struct figures_kind tables[] = {
	{"irq", "How long interrupts and softirqs took in the guest", FIGURES_COLUMNS(irq_columns),
	 "total", false, FIGURES_PER_VECTOR | FIGURES_PER_VCPU, FIGURES_PER_VECTOR, true, irq_fill},
	{.name = NULL},
};

const struct analysis interrupts_analysis = {
	.name = "interrupts",
	.new = interrupts_new,
	.free = interrupts_free,
	.clear = interrupts_clear,
	.finish = interrupts_finish,
	.error = analysis_error,
	.histograms = interrupts_histograms,
	.tables = tables,
};
