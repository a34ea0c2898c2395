/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/compare/summarize.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/chain/chain.h"
#include "host-collector/compare/figure_name.h"
#include "host-collector/tables/exits.h"
#include "host-collector/tables/interrupts.h"
#include "host-collector/tables/run_delay.h"

struct pool { /* the values of one figure */
	char name[FIGURE_NAME_MAX];
	struct histogram values;
};

struct summarizer {
	const struct model *model;
	struct run_delay *delay;
	struct exits *exits;
	struct chains *chains;
	struct interrupts *interrupts;
	struct pool *pools;
	size_t n_pools;
};

struct summarizer *summarizer_new(struct model *m)
{
	const struct chain_options merged = {.merge_vcpus = true};
	struct summarizer *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->model = m;
	s->delay = run_delay_new(m, NULL);
	s->exits = exits_new(m, NULL);
	s->chains = chains_new(m, &merged);
	s->interrupts = interrupts_new(m, NULL);
	if (s->delay && s->exits && s->chains && s->interrupts)
		return s;
	summarizer_free(s);
	return NULL;
}

void summarizer_free(struct summarizer *s)
{
	if (!s)
		return;
	run_delay_free(s->delay);
	exits_free(s->exits);
	chains_free(s->chains);
	interrupts_free(s->interrupts);
	for (size_t i = 0; i < s->n_pools; i++)
		histogram_fini(&s->pools[i].values);
	free(s->pools);
	free(s);
}

/* Adds values to the figure of that name. 0 or -ENOMEM. */
static int pool_add(struct summarizer *s, const char *name, const struct histogram *values)
{
	struct pool *grown;

	for (size_t i = 0; i < s->n_pools; i++) {
		if (!strcmp(s->pools[i].name, name))
			return histogram_merge(&s->pools[i].values, values);
	}
	/* What is beyond the limit of a summary is in "exits" and such. */
	if (!values->count || s->n_pools == RUN_FIGURES_MAX - VCPU_STATE_COUNT)
		return 0;
	grown = realloc(s->pools, (s->n_pools + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	s->pools = grown;
	grown[s->n_pools] = (struct pool){0};
	snprintf(grown[s->n_pools].name, FIGURE_NAME_MAX, "%s", name);
	return histogram_merge(&grown[s->n_pools++].values, values);
}

static int delays_pool(struct summarizer *s)
{
	static const char *const names[] = {[RUN_DELAY_WOKEN] = "run_delay.wakeup",
					    [RUN_DELAY_PREEMPTED] = "run_delay.preempted"};
	const struct run_delay_vcpu *v;
	int err = run_delay_error(s->delay);

	for (size_t i = 0; !err && (v = run_delay_vcpu(s->delay, i)); i++) {
		for (int cause = 0; cause < RUN_DELAY_CAUSES && !err; cause++)
			err = pool_add(s, names[cause], &v->waits[cause]);
	}
	return err;
}

static int exits_pool(struct summarizer *s)
{
	const struct exit_reason *r;
	int err = exits_error(s->exits);

	for (size_t i = 0; !err && (r = exits_reason(s->exits, i)); i++) {
		err = pool_add(s, "exits", &r->handling);
		if (!err)
			err = pool_add(s, figure_name_of_exit(r->isa, r->reason).text,
				       &r->handling);
	}
	return err;
}

static int chains_pool(struct summarizer *s)
{
	const struct chain_group *g;
	int err;

	chains_finish(s->chains);
	err = chains_error(s->chains);
	for (size_t i = 0; !err && (g = chains_group(s->chains, i)); i++) {
		for (int stage = 0; stage < CHAIN_STAGE_COUNT && !err; stage++) {
			char name[FIGURE_NAME_MAX];

			snprintf(name, sizeof(name), "irq.%s.%s", chain_source_name(g->source),
				 chain_stage_name((enum chain_stage)stage));
			err = pool_add(s, name, &g->stages[stage]);
		}
	}
	return err;
}

static int interrupts_pool(struct summarizer *s)
{
	const struct interrupt_source *x;
	int err = interrupts_finish(s->interrupts);

	for (size_t i = 0; !err && (x = interrupts_source(s->interrupts, i)); i++)
		err = pool_add(s,
			       x->kind == GUEST_CPU_SOFTIRQ ? "handler.softirq" : "handler.hardirq",
			       &x->durations);
	return err;
}

static const double quantiles[] = {
#define X(NAME, name, share) share,
	RUN_STATISTICS(X)
#undef X
};

static int pool_tell(const struct pool *p, struct run_summary *out)
{
	struct run_figure *f = run_figure_add(out, p->name);

	if (!f)
		return -ENOMEM;
	f->count = p->values.count;
	f->at[RUN_MEAN] = (double)p->values.sum_ns / (double)p->values.count;
	if (out->span_ns > 0)
		f->at[RUN_RATE] = (double)p->values.count * 1e9 / (double)out->span_ns;
	for (int q = 0; q < RUN_STATISTIC_COUNT; q++) {
		if (quantiles[q] > 0)
			f->at[q] = (double)histogram_quantile(&p->values, quantiles[q]);
	}
	return 0;
}

static int shares_tell(const struct summarizer *s, struct run_summary *out)
{
	int64_t ns[VCPU_STATE_COUNT] = {0}, all = 0;
	const struct run_delay_vcpu *v;

	for (size_t i = 0; (v = run_delay_vcpu(s->delay, i)); i++) {
		for (int state = 0; state < VCPU_STATE_COUNT; state++) {
			ns[state] += v->state_ns[state];
			all += v->state_ns[state];
		}
	}
	for (int state = 0; state < VCPU_STATE_COUNT && all > 0; state++) {
		char name[FIGURE_NAME_MAX];
		struct run_figure *f;

		snprintf(name, sizeof(name), "share.%s", vcpu_state_name((enum vcpu_state)state));
		f = run_figure_add(out, name);
		if (!f)
			return -ENOMEM;
		f->count = (uint64_t)(all / 1000000);
		f->at[RUN_SHARE] = 100 * (double)ns[state] / (double)all;
	}
	return 0;
}

int summarizer_finish(struct summarizer *s, struct run_summary *out)
{
	static int (*const pools[])(struct summarizer *) = {delays_pool, exits_pool, chains_pool,
							    interrupts_pool};
	int err = 0;

	out->span_ns = model_now(s->model).ns - model_begin(s->model).ns;
	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]) && !err; i++)
		err = pools[i](s);
	for (size_t i = 0; i < s->n_pools && !err; i++)
		err = pool_tell(&s->pools[i], out);
	return err ? err : shares_tell(s, out);
}

/* Stages before sums of stages before shares. */
static const char *const causal_order[] = {
	"run_delay.preempted", "run_delay.wakeup", "exit.*",          "exits",
	"irq.*.raise",         "irq.*.wake",       "irq.*.schedule",  "irq.*.enter",
	"irq.*.deliver",       "irq.*.handle",     "handler.hardirq", "irq.*.softirq_wait",
	"irq.*.softirq_run",   "handler.softirq",  "irq.*.wait",      "irq.*.service",
	"irq.*.latency",       "share.*",
};

unsigned figure_rank(const char *name)
{
	unsigned rank = 0;

	while (rank < sizeof(causal_order) / sizeof(causal_order[0]) &&
	       fnmatch(causal_order[rank], name, 0))
		rank++;
	return rank;
}
