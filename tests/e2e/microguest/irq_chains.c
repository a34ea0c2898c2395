// SPDX-License-Identifier: GPL-2.0-only
#include "irq_chains.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "host-collector/analyze/chain/chain.h"
#include "host-collector/engine/replay.h"
#include "irq_machine.h"

enum { CHAINS_MAX = 4 * IRQ_SCENE_INTERRUPTS_FULL };

#define LATE_NS 10000000ll /* the analysis's own limit */

/* What a kind's chains were off by, at worst. */
struct tally {
	size_t chains, woken;
	int64_t handler_off_ns, duration_off_ns, latency_off_ns, err_ns;
};

struct check {
	const struct irq_scene *scene;
	struct pipeline *pipeline;
	struct model *model;
	struct chains *chains;
	size_t n, late; /* late: where the machine stood still, by the guest's stamps */
	struct chain all[CHAINS_MAX]; /* as they were closed; then by vCPU and handler */
	struct tally tallies[IRQ_KIND_COUNT];
};

static void on_closed(void *context, const struct chain *c)
{
	struct check *k = context;

	assert_true(k->n < CHAINS_MAX);
	k->all[k->n++] = *c;
}

static int by_handler(const void *a, const void *b)
{
	const struct chain *x = a, *y = b;

	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	return (x->at[CHAIN_HANDLER].ns > y->at[CHAIN_HANDLER].ns) -
	       (x->at[CHAIN_HANDLER].ns < y->at[CHAIN_HANDLER].ns);
}

static int64_t ns_of(const struct check *k, uint64_t tsc)
{
	struct host_ns t;

	assert_true(pipeline_host_ns(k->pipeline, tsc, &t));
	return t.ns;
}

static void worst(int64_t *so_far, int64_t off)
{
	if (llabs(off) > *so_far)
		*so_far = llabs(off);
}

/* How far `value` is outside [from, to]. */
static int64_t outside(int64_t value, int64_t from, int64_t to)
{
	return value < from ? from - value : value > to ? value - to : 0;
}

static enum chain_source source_of(enum irq_kind kind)
{
	static const enum chain_source sources[IRQ_KIND_COUNT] = {
		[IRQ_KIND_MSI] = CHAIN_SOURCE_MSI,       [IRQ_KIND_EDGE] = CHAIN_SOURCE_GSI,
		[IRQ_KIND_LEVEL] = CHAIN_SOURCE_GSI,     [IRQ_KIND_IRQFD_MSI] = CHAIN_SOURCE_MSI,
		[IRQ_KIND_IRQFD_PIN] = CHAIN_SOURCE_GSI, [IRQ_KIND_IPI] = CHAIN_SOURCE_IPI,
		[IRQ_KIND_TIMER] = CHAIN_SOURCE_TIMER,
	};

	return sources[kind];
}

static uint32_t gsi_of(const struct irq_raised *r)
{
	switch (r->kind) {
	case IRQ_KIND_EDGE:
		return (r->vector == IRQ_VECTOR_SHARED ? IRQ_GSI_EDGE_SHARED : IRQ_GSI_EDGE) +
		       r->vcpu;
	case IRQ_KIND_LEVEL:
		return IRQ_GSI_LEVEL + r->vcpu;
	case IRQ_KIND_IRQFD_PIN:
		return IRQ_GSI_IRQFD_PIN + r->vcpu;
	default:
		return 0;
	}
}

/* When the latency of `r` began, as far as the VMM and the guest know. */
static void begin_bounds(const struct check *k, const struct irq_raised *r, int64_t *from,
			 int64_t *to)
{
	const struct irq_guest_entry *run = irq_scene_run(k->scene, r);
	uint64_t first = r->before, last = irq_scene_host_tsc(k->scene, r->vcpu, run->entry);

	if (r->after && r->kind != IRQ_KIND_IRQFD_PIN && !r->again && r->after < last)
		last = r->after; /* else the guest raised it, or a worker of the kernel */
	*from = ns_of(k, first);
	*to = ns_of(k, last);
}

static void chain_check(struct check *k, const struct chain *c, const struct irq_raised *r)
{
	const struct irq_guest_entry *run = irq_scene_run(k->scene, r);
	struct tally *t = &k->tallies[r->kind];
	int64_t entry = ns_of(k, irq_scene_host_tsc(k->scene, r->vcpu, run->entry));
	int64_t exit = ns_of(k, irq_scene_host_tsc(k->scene, r->vcpu, run->exit));
	int64_t err = c->guest_err_ns, duration, latency, from, to;

	if (c->vector != r->vector || c->source != source_of(r->kind) || c->gsi != gsi_of(r))
		fail_msg("vCPU %u: vector %#x of %s (GSI %u) is said to be %#x of %s (GSI %u)",
			 r->vcpu, r->vector, irq_kind_name(r->kind), gsi_of(r), c->vector,
			 chain_source_name(c->source), c->gsi);
	assert_true(chain_saw(c, CHAIN_ACCEPT));
	assert_true(chain_stage_ns(c, CHAIN_STAGE_HANDLE, &duration));
	assert_true(chain_stage_ns(c, CHAIN_STAGE_LATENCY, &latency));
	assert_int_equal(c->level, r->kind == IRQ_KIND_LEVEL);
	begin_bounds(k, r, &from, &to);
	worst(&t->handler_off_ns, c->at[CHAIN_HANDLER].ns - entry);
	worst(&t->duration_off_ns, duration - (exit - entry));
	worst(&t->latency_off_ns, outside(latency, entry - to, entry - from));
	worst(&t->err_ns, err + c->host_err_ns);
	k->late += entry - from >= LATE_NS;
	t->chains++;
	t->woken += chain_saw(c, CHAIN_WAKEUP);
	if (outside(c->at[CHAIN_HANDLER].ns, entry - err, entry + err) ||
	    outside(duration, exit - entry - 2 * err, exit - entry + 2 * err) ||
	    outside(latency, entry - to - err - c->host_err_ns,
		    entry - from + err + c->host_err_ns))
		fail_msg("vCPU %u, vector %#x, %s: latency %" PRId64 " ns, run %" PRId64
			 " ns, +-%" PRId64 " and %u ns; by the guest's stamps %" PRId64
			 " to %" PRId64 " and %" PRId64 " ns",
			 r->vcpu, r->vector, irq_kind_name(r->kind), latency, duration, err,
			 c->host_err_ns, entry - to, entry - from, exit - entry);
	if (r->mode == IRQ_GUEST_SPIN && r->kind != IRQ_KIND_TIMER)
		assert_false(chain_saw(c, CHAIN_WAKEUP)); /* it does not sleep */
}

/* Both in the order of the runs: one chain for each, its coalesced accepts the merged ones. */
static void chains_check(struct check *k)
{
	const struct irq_scene *s = k->scene;
	size_t at = 0;

	for (size_t i = 0; i < s->n_raised; at++) {
		const struct irq_raised *r = &s->raised[i++];
		uint32_t merged = 0;

		while (i < s->n_raised && s->raised[i].vcpu == r->vcpu &&
		       s->raised[i].log == r->log) {
			merged++;
			i++;
		}
		if (at == k->n)
			fail_msg("%zu chains, but more runs of handlers", k->n);
		assert_int_equal(k->all[at].vcpu, r->vcpu);
		chain_check(k, &k->all[at], r);
		if (k->all[at].coalesced != merged)
			fail_msg("vCPU %u, vector %#x, %s: %u accepts more than one, not %u",
				 r->vcpu, r->vector, irq_kind_name(r->kind), k->all[at].coalesced,
				 merged);
	}
	assert_int_equal(at, k->n); /* none invented */
}

static void figures_check(const struct check *k)
{
	const struct chain_group *g;
	uint64_t handled = 0, lost = 0;

	for (size_t i = 0; (g = chains_group(k->chains, i)); i++) {
		handled += g->handled;
		assert_int_equal(g->half, 0);
		assert_int_equal(g->torn, 0);
		lost += g->lost;
		assert_int_equal(g->beyond, 0);
	}
	assert_true(lost <= k->late);
	assert_int_equal(handled, k->n);
	assert_int_equal(chains_handlers_alone(k->chains), 0);
	assert_int_equal(chains_error(k->chains), 0);
}

static void tallies_print(const struct check *k)
{
	for (int kind = 0; kind < IRQ_KIND_COUNT; kind++) {
		const struct tally *t = &k->tallies[kind];

		printf("  %-20s %4zu chains, %4zu woke the vCPU; handler off by %" PRId64
		       " ns, its length by %" PRId64 " ns, latency by %" PRId64
		       " ns at most, printed error +-%" PRId64 " ns\n",
		       irq_kind_name(kind), t->chains, t->woken, t->handler_off_ns,
		       t->duration_off_ns, t->latency_off_ns, t->err_ns);
	}
}

void irq_chains_check(const struct irq_scene *s)
{
	struct check *k = calloc(1, sizeof(*k));
	struct chain_options options = {.closed = on_closed, .context = k};
	struct pipeline_options pipeline = {0};
	struct recording_info info;
	char why[256] = "";

	assert_non_null(k);
	k->scene = s;
	assert_non_null(pipeline.model = k->model = model_new());
	assert_non_null(k->chains = chains_new(k->model, &options));
	assert_non_null(k->pipeline = pipeline_new(&pipeline));
	if (replay_run(k->pipeline, s->path, &info, why, sizeof(why)))
		fail_msg("%s", why);
	chains_finish(k->chains);
	qsort(k->all, k->n, sizeof(*k->all), by_handler);
	chains_check(k);
	tallies_print(k);
	figures_check(k);
	chains_free(k->chains);
	pipeline_free(k->pipeline);
	model_free(k->model);
	free(k);
}
