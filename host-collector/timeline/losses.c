/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/losses.h"

#include <string.h>

static const int64_t near_ns = 100000000;

/* Span i takes in its successor. */
static void span_join(struct losses *l, size_t i)
{
	struct loss_span *span = &l->spans[i];
	const struct loss_span *next = span + 1;

	if (next->end.ns > span->end.ns)
		span->end = next->end;
	span->counts.kernel += next->counts.kernel;
	span->counts.user += next->counts.user;
	span->counts.channel += next->counts.channel;
	l->n--;
	memmove(span + 1, span + 2, (l->n - i - 1) * sizeof(*span));
}

static int64_t distance_ns(const struct losses *l, size_t i)
{
	return l->spans[i + 1].begin.ns - l->spans[i].end.ns;
}

static void nearest_join(struct losses *l)
{
	size_t best = 0;

	for (size_t i = 1; i + 1 < l->n; i++) {
		if (distance_ns(l, i) < distance_ns(l, best))
			best = i;
	}
	span_join(l, best);
}

void losses_add(struct losses *l, const struct loss_span *span)
{
	size_t at;

	if (l->n == LOSS_SPANS_MAX)
		nearest_join(l);
	at = l->n;
	while (at && l->spans[at - 1].begin.ns > span->begin.ns)
		at--;
	memmove(&l->spans[at + 1], &l->spans[at], (l->n - at) * sizeof(*span));
	l->spans[at] = *span;
	l->n++;
	if (at && distance_ns(l, at - 1) <= near_ns)
		span_join(l, --at);
	while (at + 1 < l->n && distance_ns(l, at) <= near_ns)
		span_join(l, at);
}

uint64_t losses_correct(struct losses *l, uint64_t n, enum loss_truth truth)
{
	uint64_t left = n;

	for (size_t i = l->n; i-- && left;) {
		struct loss_counts *counts = &l->spans[i].counts;
		const uint64_t taken = left < counts->channel ? left : counts->channel;

		left -= taken;
		counts->channel -= taken;
		if (truth == LOSS_BY_USER)
			counts->user += taken;
		if (counts->kernel || counts->user || counts->channel)
			continue;
		l->n--;
		memmove(&l->spans[i], &l->spans[i + 1], (l->n - i) * sizeof(l->spans[0]));
	}
	return n - left;
}
