/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/compare/summarize.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/compare/figure_name.h"
#include "host-collector/tables/chains.h"
#include "host-collector/tables/exits.h"
#include "host-collector/tables/interrupts.h"
#include "host-collector/tables/run_delay.h"

struct pool { /* the values of one figure */
	char name[FIGURE_NAME_MAX];
	struct histogram values;
};

struct summarizer {
	const struct model *model;
	struct analyses analyses;
	struct run_delay *delay; /* one of these */
	struct pool *pools;
	size_t n_pools;
};

/* The analyses whose histograms are figures, in the order of the figures. */
static const struct analysis *const figures_of[] = {&run_delay_analysis, &exits_analysis,
						    &chains_analysis, &interrupts_analysis};

struct summarizer *summarizer_new(struct model *m)
{
	struct summarizer *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->model = m;
	for (size_t i = 0; i < sizeof(figures_of) / sizeof(figures_of[0]); i++) {
		void *analysis = analyses_start(&s->analyses, figures_of[i], m, NULL);

		if (!analysis) {
			summarizer_free(s);
			return NULL;
		}
		if (figures_of[i] == &run_delay_analysis)
			s->delay = analysis;
	}
	return s;
}

void summarizer_free(struct summarizer *s)
{
	if (!s)
		return;
	analyses_fini(&s->analyses);
	for (size_t i = 0; i < s->n_pools; i++)
		histogram_fini(&s->pools[i].values);
	free(s->pools);
	free(s);
}

int summarizer_add(struct summarizer *s, const char *name, const struct histogram *values)
{
	struct pool *grown;

	for (size_t i = 0; i < s->n_pools; i++) {
		if (!strcmp(s->pools[i].name, name))
			return histogram_merge(&s->pools[i].values, values);
	}
	/* What is beyond the limit of a summary is in "exits" and such. */
	if (s->n_pools == RUN_FIGURES_MAX - VCPU_STATE_COUNT)
		return 0;
	grown = realloc(s->pools, (s->n_pools + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	s->pools = grown;
	grown[s->n_pools] = (struct pool){0};
	snprintf(grown[s->n_pools].name, FIGURE_NAME_MAX, "%s", name);
	return histogram_merge(&grown[s->n_pools++].values, values);
}

static int histogram_take(void *context, const char *figure, const struct histogram *values)
{
	if (!values->count)
		return 0;
	return summarizer_add(context, figure_name_current(figure).text, values);
}

static int analyses_pool(struct summarizer *s)
{
	int err;

	analyses_finish(&s->analyses);
	err = analyses_error(&s->analyses);
	for (size_t i = 0; i < s->analyses.n && !err; i++)
		err = s->analyses.items[i].what->histograms(s->analyses.items[i].self,
							    histogram_take, s);
	return err;
}

static const double quantiles[] = {
#define X(NAME, name, share) share,
	RUN_STATISTICS(X)
#undef X
};

static int pool_report(const struct pool *p, struct run_summary *out)
{
	struct run_figure *f = run_figure_add(out, p->name);

	if (!f)
		return -ENOMEM;
	f->count = p->values.count;
	if (!f->count)
		return 0;
	f->at[RUN_MEAN] = (double)p->values.sum_ns / (double)p->values.count;
	if (out->span_ns > 0)
		f->at[RUN_RATE] = (double)p->values.count * 1e9 / (double)out->span_ns;
	for (int q = 0; q < RUN_STATISTIC_COUNT; q++) {
		if (quantiles[q] > 0)
			f->at[q] = (double)histogram_quantile(&p->values, quantiles[q]);
	}
	return 0;
}

static int shares_report(const struct summarizer *s, struct run_summary *out)
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
	int err;

	out->span_ns = model_now(s->model).ns - model_begin(s->model).ns;
	err = analyses_pool(s);
	for (size_t i = 0; i < s->n_pools && !err; i++)
		err = pool_report(&s->pools[i], out);
	return err ? err : shares_report(s, out);
}

/* Stages before sums of stages before shares. */
static const char *const causal_order[] = {
	"run_delay.preempted", "run_delay.wakeup", "exit.*",          "exits",
	"irq.*.raise",         "irq.*.wake",       "irq.*.schedule",  "irq.*.enter",
	"irq.*.deliver",       "irq.*.handle",     "handler.hardirq", "irq.*.softirq_wait",
	"irq.*.softirq_run",   "handler.softirq",  "irq.*.wait",      "irq.*.service",
	"irq.*.latency",       "pair.*",           "share.*",
};

unsigned figure_rank(const char *name)
{
	unsigned rank = 0;

	while (rank < sizeof(causal_order) / sizeof(causal_order[0]) &&
	       fnmatch(causal_order[rank], name, 0))
		rank++;
	return rank;
}
