/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/event/pair_history.h"

#include <stdlib.h>

struct spans {
	uint64_t n; /* ever */
	struct pair_span ring[PAIR_HISTORY_KEPT];
};

struct pair_history {
	size_t n, at; /* at: the vCPU that was asked for last */
	struct history_of_vcpu {
		uint32_t vm, vcpu;
		struct spans *spans; /* [0] short ones, [1] long ones */
	} vcpus[PAIR_HISTORY_VCPUS_MAX];
};

struct pair_history *pair_history_new(void)
{
	return calloc(1, sizeof(struct pair_history));
}

void pair_history_free(struct pair_history *h)
{
	for (size_t i = 0; h && i < h->n; i++)
		free(h->vcpus[i].spans);
	free(h);
}

static struct history_of_vcpu *vcpu_get(struct pair_history *h, uint32_t vm, uint32_t vcpu)
{
	struct history_of_vcpu *v = &h->vcpus[h->at];

	if (h->at < h->n && v->vm == vm && v->vcpu == vcpu)
		return v;
	for (h->at = 0; h->at < h->n; h->at++) {
		v = &h->vcpus[h->at];
		if (v->vm == vm && v->vcpu == vcpu)
			return v;
	}
	if (h->n == PAIR_HISTORY_VCPUS_MAX)
		return NULL;
	v = &h->vcpus[h->n];
	v->spans = calloc(2, sizeof(*v->spans));
	if (!v->spans)
		return NULL;
	v->vm = vm;
	v->vcpu = vcpu;
	h->n++;
	return v;
}

static struct pair_span span_of(const struct pair *pair)
{
	return (struct pair_span){
		.begin = pair->from.t,
		.end = pair->to.t.ns > pair->from.t.ns ? pair->to.t : pair->from.t,
		.duration_ns = pair->duration_ns,
		.error_ns = pair->error_ns,
		.key = pair->key,
		.past_losses = pair->past_losses,
	};
}

static void end_add(struct pair_history *h, const struct pair_end *end, const struct pair *pair)
{
	struct history_of_vcpu *v = vcpu_get(h, end->vm, end->vcpu);
	struct spans *spans;

	if (!v)
		return;
	spans = &v->spans[pair->duration_ns >= PAIR_HISTORY_LONG_NS];
	spans->ring[spans->n++ % PAIR_HISTORY_KEPT] = span_of(pair);
}

static bool is_of(const struct pair_end *end, uint32_t vm, uint32_t vcpu)
{
	return end->vcpu_known && end->vm == vm && end->vcpu == vcpu;
}

void pair_history_add(struct pair_history *h, const struct pair *pair)
{
	if (pair->from.vcpu_known)
		end_add(h, &pair->from, pair);
	if (pair->to.vcpu_known &&
	    !(pair->from.vcpu_known && is_of(&pair->to, pair->from.vm, pair->from.vcpu)))
		end_add(h, &pair->to, pair);
}

/* ---- a time ---- */

static void span_take(struct pair_overlaps *o, const struct pair_window *window,
		      const struct pair_span *span)
{
	if (span->begin.ns > window->until.ns || span->end.ns < window->from.ns)
		return;
	if (!o->n++ || span->duration_ns > o->longest.duration_ns)
		o->longest = *span;
}

void pair_overlaps_add(struct pair_overlaps *o, const struct pair *pair,
		       const struct pair_window *window)
{
	const struct pair_span span = span_of(pair);

	if (is_of(&pair->from, window->vm, window->vcpu) ||
	    is_of(&pair->to, window->vm, window->vcpu))
		span_take(o, window, &span);
}

struct question {
	const struct pair_window *window;
	struct pair_overlaps found;
};

static void on_pending(void *context, const struct pair *pair)
{
	struct question *q = context;

	pair_overlaps_add(&q->found, pair, q->window);
}

static void spans_take(struct question *q, const struct spans *spans)
{
	const uint64_t oldest = spans->n > PAIR_HISTORY_KEPT ? spans->n - PAIR_HISTORY_KEPT : 0;

	/* Pairs are kept in the order of their ends. */
	q->found.more |=
		oldest && spans->ring[oldest % PAIR_HISTORY_KEPT].end.ns > q->window->from.ns;
	for (uint64_t i = oldest; i < spans->n; i++)
		span_take(&q->found, q->window, &spans->ring[i % PAIR_HISTORY_KEPT]);
}

struct pair_overlaps pair_history_find(const struct pair_history *h, const struct pairs *pairs,
				       const struct pair_window *window)
{
	struct question q = {.window = window};

	for (size_t i = 0; i < h->n; i++) {
		const struct history_of_vcpu *v = &h->vcpus[i];

		if (v->vm != window->vm || v->vcpu != window->vcpu)
			continue;
		spans_take(&q, &v->spans[0]);
		spans_take(&q, &v->spans[1]);
	}
	if (pairs)
		pairs_pending_each(pairs, on_pending, &q);
	return q.found;
}
