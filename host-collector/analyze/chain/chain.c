/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/chain/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/chain/chain_route.h"
#include "host-collector/util/lru.h"

enum { GROUPS_MAX = 4096, TICKS_KEPT = 256, ROUTES_MAX = 4096 };

struct route {
	uint32_t vcpu;
	uint8_t vector;
};

struct chains {
	struct model *model;
	struct chain_options options;
	void *closed_context;
	struct chain_route *route;
	bool shared; /* the route belongs to other chains */
	struct lru index;
	struct chain_group **groups; /* by slot; NULL: the slot was never used */
	struct lru routes_index;
	struct route *routes; /* the newest route of each irq of each guest */
	size_t n_worst;
	struct chain worst[CHAIN_WORST_MAX]; /* by falling latency */
	uint64_t n_troubles;                 /* in total; only the newest are kept */
	struct chain_trouble troubles[CHAIN_TROUBLES_MAX];
	size_t n_timed;
	uint32_t timed[MODEL_VMS_MAX]; /* VMs whose timer interrupts are seen */
	uint64_t n_ticks;              /* ever */
	struct chain_tick ticks[TICKS_KEPT];
	int error;
};

static const char *const source_names[] = {
#define X(NAME, name) [CHAIN_SOURCE_##NAME] = name,
	CHAIN_SOURCES(X)
#undef X
};

static const struct {
	const char *name;
	enum chain_point from, to;
} stages[] = {
#define X(NAME, name, from, to) [CHAIN_STAGE_##NAME] = {name, CHAIN_##from, CHAIN_##to},
	CHAIN_STAGES(X)
#undef X
};

const char *chain_source_name(enum chain_source s)
{
	return source_names[s];
}

const char *chain_stage_name(enum chain_stage s)
{
	return stages[s].name;
}

bool chain_stage_ns(const struct chain *c, enum chain_stage s, int64_t *ns)
{
	enum chain_point from = stages[s].from, to = stages[s].to;

	if (!chain_saw(c, to) || (from != CHAIN_POINT_COUNT && !chain_saw(c, from)))
		return false;
	/* A timer first wakes its vCPU. The accept of its interrupt comes after that and wakes
	 * nothing. */
	if (s == CHAIN_STAGE_WAKE && c->source == CHAIN_SOURCE_TIMER)
		return false;
	*ns = c->at[to].ns - (from == CHAIN_POINT_COUNT ? c->begin.ns : c->at[from].ns);
	return true;
}

/* ---- figures ---- */

static bool point_is_guests(enum chain_point p)
{
	return p >= CHAIN_HANDLER && p <= CHAIN_SOFTIRQ_EXIT;
}

static int64_t stage_err_ns(const struct chain *c, enum chain_stage s)
{
	enum chain_point from = stages[s].from;

	return (int64_t)(point_is_guests(stages[s].to) ? c->guest_err_ns : c->host_err_ns) +
	       (from != CHAIN_POINT_COUNT && point_is_guests(from) ? c->guest_err_ns
								   : c->host_err_ns);
}

static void group_clear(struct chain_group *g)
{
	for (int s = 0; s < CHAIN_STAGE_COUNT; s++)
		histogram_fini(&g->stages[s]);
	memset(g, 0, sizeof(*g));
}

static void groups_free(struct chains *x)
{
	for (uint32_t slot = 0; x->index.count; slot++) {
		if (!lru_used(&x->index, slot))
			continue;
		group_clear(x->groups[slot]);
		free(x->groups[slot]);
		x->groups[slot] = NULL;
		lru_remove(&x->index, slot);
	}
}

/* Returns NULL without memory; chains_error() reports that. */
static struct chain_group *group_of(struct chains *x, uint32_t vm, uint32_t of_vcpu,
				    enum chain_source source, uint8_t vector)
{
	/* The number of a VM has 32 bits, that of a vCPU at most 20. */
	uint32_t vcpu = x->options.merge_vcpus ? 0 : of_vcpu;
	uint64_t key = (uint64_t)vm << 32 | (uint64_t)(vcpu & CHAIN_NO_VCPU) << 12 |
		       (uint64_t)source << 8 | vector;
	struct chain_group *g;
	uint32_t slot;
	bool fresh;

	slot = lru_put(&x->index, key, &fresh);
	if (!x->groups[slot]) {
		x->groups[slot] = calloc(1, sizeof(*g));
		fresh = true;
	}
	g = x->groups[slot];
	if (!g) {
		lru_remove(&x->index, slot);
		x->error = -ENOMEM;
		return NULL;
	}
	if (fresh) {
		group_clear(g);
		g->vm = vm;
		g->vcpu = vcpu;
		g->vector = vector;
		g->source = source;
		g->irq = -1;
	}
	return g;
}

static struct chain_group *group_get(struct chains *x, const struct chain *c)
{
	return group_of(x, c->vm, c->vcpu, c->source, c->vector);
}

static void on_ignored(void *context, uint32_t vm, uint32_t vcpu, enum chain_source source,
		       uint8_t vector)
{
	struct chains *x = context;
	struct chain_group *g = x->options.uncounted ? NULL : group_of(x, vm, vcpu, source, vector);

	if (g)
		g->ignored++;
}

static void stages_count(struct chains *x, struct chain_group *g, const struct chain *c)
{
	int64_t ns;

	for (int s = 0; s < CHAIN_STAGE_COUNT; s++) {
		if (!chain_stage_ns(c, (enum chain_stage)s, &ns))
			continue;
		if (ns < 0) {
			g->negative++;
			g->beyond += ns < -stage_err_ns(c, (enum chain_stage)s);
			ns = 0;
		}
		if (histogram_add(&g->stages[s], (uint64_t)ns))
			x->error = -ENOMEM;
	}
}

static int64_t latency_ns(const struct chain *c)
{
	return c->at[CHAIN_HANDLER].ns - c->begin.ns;
}

static void worst_take(struct chains *x, const struct chain *c)
{
	size_t at = x->n_worst;

	while (at && latency_ns(&x->worst[at - 1]) < latency_ns(c))
		at--;
	if (at == CHAIN_WORST_MAX)
		return;
	if (x->n_worst < CHAIN_WORST_MAX)
		x->n_worst++;
	memmove(&x->worst[at + 1], &x->worst[at], (x->n_worst - at - 1) * sizeof(*c));
	x->worst[at] = *c;
}

/* Returns true if this irq has another route than before. */
static bool route_take(struct chains *x, const struct chain *c)
{
	bool fresh, moved;
	struct route *w = &x->routes[lru_put(&x->routes_index,
					     (uint64_t)c->vm << 32 | (uint32_t)c->irq, &fresh)];

	moved = !fresh && (w->vcpu != c->vcpu || w->vector != c->vector);
	*w = (struct route){c->vcpu, c->vector};
	return moved;
}

bool chains_see_timers(const struct chains *x, uint32_t vm)
{
	for (size_t i = 0; i < x->n_timed; i++) {
		if (x->timed[i] == vm)
			return true;
	}
	return false;
}

static void handled_count(struct chains *x, struct chain_group *g, const struct chain *c)
{
	g->handled++;
	g->posted += c->posted;
	g->late += !c->lost && latency_ns(c) - c->guest_err_ns >= x->options.limit_ns;
	if (c->irq >= 0) {
		g->irq = c->irq;
		g->moved += route_take(x, c);
	}
	for (int p = 0; p < CHAIN_PLACE_COUNT; p++)
		g->place_ns[p] += c->place_ns[p];
	worst_take(x, c);
}

/* Returns 0, or -ENOMEM if there is no memory for its group. */
static int closed_count(struct chains *x, const struct chain *c, enum chain_end end)
{
	struct chain_group *g = group_get(x, c);

	if (!g)
		return -ENOMEM;
	if (end == CHAIN_END_TORN) {
		g->torn++;
		return 0;
	}
	stages_count(x, g, c);
	g->coalesced += c->coalesced;
	if (end == CHAIN_END_HALF)
		g->half++;
	else
		handled_count(x, g, c);
	return 0;
}

static void on_closed(void *context, const struct chain *c, enum chain_end end)
{
	struct chains *x = context;

	if ((!x->options.uncounted && closed_count(x, c, end)) || end == CHAIN_END_TORN)
		return;
	if (end == CHAIN_END_HANDLED && c->source == CHAIN_SOURCE_TIMER &&
	    x->n_timed < MODEL_VMS_MAX && !chains_see_timers(x, c->vm))
		x->timed[x->n_timed++] = c->vm;
	if (x->options.closed)
		x->options.closed(x->closed_context, c);
}

/* ---- troubles ---- */

static struct chain_trouble *trouble_add(struct chains *x, enum chain_trouble_kind kind,
					 const struct chain *c)
{
	struct chain_trouble *t = &x->troubles[x->n_troubles++ % CHAIN_TROUBLES_MAX];

	*t = (struct chain_trouble){.kind = kind, .chain = *c, .until = c->at[CHAIN_HANDLER]};
	return t;
}

static void trouble_report(const struct chains *x, const struct chain_trouble *t)
{
	if (x->options.trouble)
		x->options.trouble(x->options.context, t);
}

static void on_late(void *context, const struct chain *c)
{
	trouble_report(context, trouble_add(context, CHAIN_LATE, c));
}

static struct chain_trouble *trouble_find(struct chains *x, const struct chain *c)
{
	for (size_t i = 0; i < CHAIN_TROUBLES_MAX; i++) {
		struct chain_trouble *t = &x->troubles[i];

		if (t->chain.observed && t->chain.vm == c->vm && t->chain.vcpu == c->vcpu &&
		    t->chain.vector == c->vector && t->chain.begin.ns == c->begin.ns)
			return t;
	}
	return NULL;
}

/* If the vCPU halted in between, this may become known only after the late handler. */
static void on_lost(void *context, const struct chain *c, bool halted, uint32_t progress)
{
	struct chains *x = context;
	struct chain_trouble *t = trouble_find(x, c);
	bool news = !t || t->kind != CHAIN_LOST;
	struct chain_group *g;

	if (!t)
		t = trouble_add(x, CHAIN_LOST, c);
	t->kind = CHAIN_LOST;
	t->chain = *c;
	t->open = !chain_saw(c, CHAIN_HANDLER);
	t->halted = halted;
	t->progress = progress;
	trouble_report(x, t);
	if (news && !x->options.uncounted && (g = group_get(x, c)))
		g->lost++;
}

static void on_found(void *context, const struct chain *c)
{
	struct chain_trouble *t = trouble_find(context, c);

	if (!t)
		return;
	t->chain = *c;
	t->open = false;
	t->until = c->at[CHAIN_HANDLER];
	trouble_report(context, t);
}

static void on_tick(void *context, const struct chain *c)
{
	struct chains *x = context;

	x->ticks[x->n_ticks++ % TICKS_KEPT] =
		(struct chain_tick){.vm = c->vm,
				    .vcpu = c->vcpu,
				    .accepted = c->at[CHAIN_ACCEPT],
				    .handled = c->at[CHAIN_HANDLER],
				    .err_ns = c->host_err_ns + c->guest_err_ns};
}

const struct chain_tick *chains_tick_at(const struct chains *x, uint32_t vm, uint32_t vcpu,
					struct host_ns t)
{
	for (uint64_t i = 1; i <= TICKS_KEPT && i <= x->n_ticks; i++) {
		const struct chain_tick *tick = &x->ticks[(x->n_ticks - i) % TICKS_KEPT];

		if (tick->vm == vm && tick->vcpu == vcpu && tick->handled.ns == t.ns)
			return tick;
	}
	return NULL;
}

const struct chain_trouble *chains_trouble(const struct chains *x, size_t index)
{
	uint64_t first =
		x->n_troubles > CHAIN_TROUBLES_MAX ? x->n_troubles - CHAIN_TROUBLES_MAX : 0;

	return first + index < x->n_troubles ? &x->troubles[(first + index) % CHAIN_TROUBLES_MAX]
					     : NULL;
}

const struct chain_trouble *chains_trouble_in(const struct chains *x, uint32_t vm, uint32_t vcpu,
					      enum chain_trouble_kind kind, bool timers,
					      struct host_ns from, struct host_ns to)
{
	const struct chain_trouble *t, *longest = NULL;
	int64_t longest_ns = 0;

	for (size_t i = 0; (t = chains_trouble(x, i)); i++) {
		int64_t begin = t->chain.begin.ns > from.ns ? t->chain.begin.ns : from.ns;
		int64_t end = t->open || t->until.ns > to.ns ? to.ns : t->until.ns;

		if (t->chain.vm != vm || t->chain.vcpu != vcpu || t->kind != kind ||
		    (kind == CHAIN_LATE && timers && t->chain.source != CHAIN_SOURCE_TIMER) ||
		    end - begin <= longest_ns)
			continue;
		longest = t;
		longest_ns = end - begin;
	}
	return longest;
}

/* ---- the whole ---- */

void chains_watch(struct chains *x, void (*closed)(void *context, const struct chain *c),
		  void *context)
{
	x->options.closed = closed;
	x->closed_context = context;
}

/* joined: whose route it shares; NULL: it has one of its own. */
static struct chains *chains_make(struct model *m, struct chains *joined,
				  const struct chain_options *options)
{
	struct chains *x = calloc(1, sizeof(*x));
	struct chain_sink sink = {on_closed, on_late, on_tick, on_lost, on_found, on_ignored, x};

	if (!x)
		return NULL;
	x->model = m;
	x->options = *options;
	x->closed_context = options->context;
	if (!x->options.limit_ns)
		x->options.limit_ns = CHAIN_LIMIT_NS;
	x->groups = calloc(GROUPS_MAX, sizeof(struct chain_group *));
	x->routes = calloc(ROUTES_MAX, sizeof(*x->routes));
	if (!x->groups || !x->routes || lru_init(&x->index, GROUPS_MAX) ||
	    lru_init(&x->routes_index, ROUTES_MAX))
		goto fail;
	x->shared = joined != NULL;
	x->route = joined ? joined->route : chain_route_new(m);
	if (x->route && !chain_route_listen(x->route, x->options.limit_ns, &sink))
		return x;
fail:
	chains_free(x);
	return NULL;
}

struct chains *chains_new(struct model *m, const struct chain_options *options)
{
	return chains_make(m, NULL, options);
}

struct chains *chains_share(struct chains *joined, const struct chain_options *options)
{
	return chains_make(joined->model, joined, options);
}

void chains_free(struct chains *x)
{
	if (!x)
		return;
	groups_free(x);
	if (!x->shared)
		chain_route_free(x->route);
	lru_fini(&x->index);
	lru_fini(&x->routes_index);
	free(x->routes);
	free(x->groups);
	free(x);
}

void chains_clear(struct chains *x)
{
	groups_free(x);
	x->n_worst = 0;
	if (x->n_troubles)
		memset(x->troubles, 0, sizeof(x->troubles));
	x->n_troubles = 0;
}

void chains_finish(struct chains *x)
{
	if (!x->shared)
		chain_route_finish(x->route);
}

int chains_error(const struct chains *x)
{
	return x->error;
}

const struct chain_group *chains_group(const struct chains *x, size_t index)
{
	if (index >= x->index.count)
		return NULL;
	for (uint32_t slot = 0;; slot++) {
		if (lru_used(&x->index, slot) && !index--)
			return x->groups[slot];
	}
}

const struct chain *chains_worst(const struct chains *x, size_t index)
{
	return index < x->n_worst ? &x->worst[index] : NULL;
}

uint64_t chains_handlers_alone(const struct chains *x)
{
	return chain_route_handlers_alone(x->route);
}
