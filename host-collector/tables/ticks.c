/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * After each tick a window opens that begins when the next tick is due. It collects the time that
 * the vCPU spends outside the guest. A tick in time discards the window, a late one ends it. The
 * model delivers a vCPU's spans late (MODEL_HOLD_NS), so ended windows wait for the spans that
 * cover them.
 */
#include "host-collector/tables/ticks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/tables/figures.h"
#include "host-collector/util/lru.h"

enum { CPUS_MAX = 4096, WINDOWS_MAX = 64, REGULAR_WANTED = 2, LATE_PART = 8 };

struct window {
	struct host_ns begin, end; /* end INT64_MAX: the tick has not come */
	int64_t kept_ns, unknown_ns;
};

struct track {
	struct ticks_cpu seen;
	unsigned regular; /* ticks in time, in a row */
	bool ticking;
	struct host_ns last;
	struct host_ns covered; /* by vCPU spans */
	unsigned head, count;
	struct window windows[WINDOWS_MAX]; /* the newest may be open */
};

struct ticks {
	struct analysis_base base;
	struct lru index;
	struct track *tracks[CPUS_MAX];
};

static void track_clear(struct track *k)
{
	histogram_fini(&k->seen.late);
	histogram_fini(&k->seen.off);
}

static struct track *track_get(struct ticks *t, uint32_t vm, uint16_t cpu)
{
	bool fresh;
	uint32_t slot = lru_put(&t->index, (uint64_t)vm << 32 | cpu, &fresh);
	struct track *k = t->tracks[slot];

	if (!k)
		k = t->tracks[slot] = calloc(1, sizeof(*k));
	if (!k) {
		t->base.error = -ENOMEM;
		lru_remove(&t->index, slot);
		return NULL;
	}
	if (fresh) {
		track_clear(k);
		memset(k, 0, sizeof(*k));
		k->seen.vm = vm;
		k->seen.cpu = cpu;
	}
	return k;
}

static struct window *newest(struct track *k)
{
	return &k->windows[(k->head + k->count - 1) % WINDOWS_MAX];
}

static bool window_is_open(struct track *k)
{
	return k->count && newest(k)->end.ns == INT64_MAX;
}

/* What a window has shown. */
static void window_count(struct ticks *t, struct track *k, const struct window *w, bool covered)
{
	int64_t late = w->end.ns - w->begin.ns, off = late - w->kept_ns;

	if (late < t->base.options.than_ns)
		return;
	if (histogram_add(&k->seen.late, (uint64_t)late))
		t->base.error = -ENOMEM;
	if (!covered || w->unknown_ns) {
		k->seen.unknown++;
		return;
	}
	k->seen.kept_ns += w->kept_ns;
	if (off < k->seen.interval_ns / LATE_PART || off < t->base.options.than_ns)
		return;
	if (histogram_add(&k->seen.off, (uint64_t)off))
		t->base.error = -ENOMEM;
}

static void windows_settle(struct ticks *t, struct track *k, bool final)
{
	while (k->count) {
		struct window *w = &k->windows[k->head];
		bool covered = w->end.ns <= k->covered.ns;

		if (w->end.ns == INT64_MAX || (!covered && !final))
			return;
		window_count(t, k, w, covered);
		k->head = (k->head + 1) % WINDOWS_MAX;
		k->count--;
	}
}

static void window_open(struct ticks *t, struct track *k, struct host_ns due)
{
	if (k->count == WINDOWS_MAX) { /* no host's half, or one far behind */
		window_count(t, k, &k->windows[k->head], false);
		k->head = (k->head + 1) % WINDOWS_MAX;
		k->count--;
	}
	k->windows[(k->head + k->count++) % WINDOWS_MAX] =
		(struct window){.begin = due, .end = {INT64_MAX}};
}

static void window_drop(struct track *k)
{
	if (window_is_open(k))
		k->count--;
}

/* No tick is due any more. */
static void track_break(struct track *k)
{
	k->ticking = false;
	k->regular = 0;
	window_drop(k);
}

static void tick(struct ticks *t, struct track *k, struct host_ns now)
{
	int64_t interval = model_tick_interval_ns(t->base.model, k->seen.vm);
	bool late = k->ticking && now.ns - k->last.ns - interval >= interval / LATE_PART;

	k->seen.interval_ns = interval;
	k->seen.ticks += k->ticking;
	if (window_is_open(k) && late)
		newest(k)->end = now;
	else
		window_drop(k);
	k->regular = late ? 0 : k->regular + k->ticking;
	k->ticking = true;
	k->last = now;
	if (interval && k->regular >= REGULAR_WANTED)
		window_open(t, k, (struct host_ns){now.ns + interval});
	windows_settle(t, k, false);
}

static void guest_instant_take(void *context, const struct guest_instant *i)
{
	const struct vs_event *e = &i->event;
	struct ticks *t = context;
	struct track *k;

	if (i->type != VS_EVENT_VECTOR_ENTRY && i->type != VS_EVENT_SCHED_SWITCH &&
	    i->type != VS_EVENT_LOST)
		return;
	if (i->type == VS_EVENT_VECTOR_ENTRY && ev_vector_entry_number(e) != VS_VECTOR_LOCAL_TIMER)
		return;
	k = track_get(t, i->vm, i->cpu);
	if (!k)
		return;
	if (i->type == VS_EVENT_VECTOR_ENTRY && e->pid > 0)
		tick(t, k, i->t);
	else if (i->type != VS_EVENT_SCHED_SWITCH || e->pid2 <= 0)
		track_break(k);
}

static void window_add(struct window *w, const struct vcpu_span *span)
{
	int64_t begin = span->begin.ns > w->begin.ns ? span->begin.ns : w->begin.ns;
	int64_t end = span->end.ns < w->end.ns ? span->end.ns : w->end.ns;

	if (end <= begin)
		return;
	if (span->state == VCPU_UNKNOWN)
		w->unknown_ns += end - begin;
	else if (span->state != VCPU_GUEST)
		w->kept_ns += end - begin;
}

static void vcpu_span_take(void *context, const struct vcpu_span *span)
{
	struct ticks *t = context;
	struct track *k;
	uint16_t cpu;

	if (model_guest_cpu_of_vcpu(t->base.model, span->vm, span->vcpu, &cpu))
		return;
	k = track_get(t, span->vm, cpu);
	if (!k)
		return;
	for (unsigned i = 0; i < k->count; i++)
		window_add(&k->windows[(k->head + i) % WINDOWS_MAX], span);
	k->covered = span->end;
	windows_settle(t, k, false);
}

static void ticks_free(void *analysis)
{
	struct ticks *t = analysis;

	if (!t)
		return;
	for (unsigned i = 0; i < CPUS_MAX; i++) {
		if (t->tracks[i])
			track_clear(t->tracks[i]);
		free(t->tracks[i]);
	}
	lru_fini(&t->index);
	free(t);
}

static void *ticks_new(struct model *m, const struct figures_options *options)
{
	struct ticks *t = analysis_allocate(sizeof(*t), m, options);
	struct model_observer observer = {
		.vcpu_span = vcpu_span_take,
		.guest_instant = guest_instant_take,
		.guest_types =
			EVENT_SET(VS_EVENT_VECTOR_ENTRY, VS_EVENT_SCHED_SWITCH, VS_EVENT_LOST),
		.context = t};

	if (!t)
		return NULL;
	if (lru_init(&t->index, CPUS_MAX) || model_observe(m, &observer)) {
		ticks_free(t);
		return NULL;
	}
	return t;
}

static void ticks_clear(void *analysis)
{
	struct ticks *t = analysis;

	for (uint32_t slot = 0; slot < lru_slots(&t->index); slot++) {
		struct track *k = t->tracks[slot];

		if (!k || !lru_used(&t->index, slot))
			continue;
		histogram_fini(&k->seen.late);
		histogram_fini(&k->seen.off);
		k->seen = (struct ticks_cpu){
			.vm = k->seen.vm, .cpu = k->seen.cpu, .interval_ns = k->seen.interval_ns};
	}
}

static void ticks_finish(void *analysis)
{
	struct ticks *t = analysis;

	for (uint32_t slot = 0; slot < lru_slots(&t->index); slot++) {
		if (t->tracks[slot] && lru_used(&t->index, slot)) {
			window_drop(t->tracks[slot]);
			windows_settle(t, t->tracks[slot], true);
		}
	}
}

const struct ticks_cpu *ticks_cpu(const struct ticks *t, size_t index)
{
	for (uint32_t slot = 0; slot < lru_slots(&t->index); slot++) {
		const struct track *k = t->tracks[slot];

		if (lru_used(&t->index, slot) && k && k->seen.ticks && !index--)
			return &k->seen;
	}
	return NULL;
}

/* ---- table ticks ---- */

static const struct figures_column tick_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{0, {"guest_cpu", "guest CPU", TABLE_COUNT}},
	{0, {"ticks", "ticks", TABLE_COUNT}},
	{0, {"interval", "interval", TABLE_NS}},
	{0, {"late", "late", TABLE_COUNT}},
	{0, {"late_total", "late by", TABLE_NS}},
	{0, {"kept", "by the host", TABLE_NS}},
	{0, {"off", "while it ran", TABLE_COUNT}},
	{0, {"off_total", "in all", TABLE_NS}},
	FIGURES_QUANTILES,
	{0, {"unknown", "unknown", TABLE_COUNT}},
};

static int tick_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct ticks_cpu *c;

	for (size_t i = 0; (c = ticks_cpu(analysis, i)); i++) {
		table_row(t);
		table_text(t, model_vm_name(view->model, c->vm));
		table_count(t, c->cpu);
		table_count(t, c->ticks);
		if (c->interval_ns)
			table_ns(t, c->interval_ns);
		else
			table_none(t);
		table_count(t, c->late.count);
		table_ns(t, figures_clip(c->late.sum_ns));
		table_ns(t, c->kept_ns);
		table_count(t, c->off.count);
		table_ns(t, figures_clip(c->off.sum_ns));
		figures_quantiles(t, &c->off);
		table_count(t, c->unknown);
	}
	return 0;
}

static const struct figures_kind tables[] = {
	{"ticks", "Timer ticks that came late to a busy guest CPU", FIGURES_COLUMNS(tick_columns),
	 "off_total", false, FIGURES_PER_VCPU, FIGURES_PER_VCPU, true, tick_fill},
	{.name = NULL},
};

const struct analysis ticks_analysis = {
	.name = "ticks",
	.new = ticks_new,
	.free = ticks_free,
	.clear = ticks_clear,
	.finish = ticks_finish,
	.error = analysis_error,
	.tables = tables,
};
