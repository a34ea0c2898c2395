/* SPDX-License-Identifier: GPL-2.0-only */
#include "clock/histogram.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Range 0 holds 0..STEPS-1 one by one; range r > 0 holds STEPS << (r - 1) up to twice that. */
static unsigned range_of(uint64_t ns)
{
	return ns < HISTOGRAM_STEPS ? 0 : 64u - (unsigned)__builtin_clzll(ns) - HISTOGRAM_STEP_BITS;
}

static unsigned step_of(uint64_t ns, unsigned range)
{
	return (unsigned)(range ? (ns >> (range - 1)) - HISTOGRAM_STEPS : ns);
}

static uint64_t middle_of(unsigned range, unsigned step)
{
	uint64_t width = range ? 1ull << (range - 1) : 1;

	return range ? (HISTOGRAM_STEPS + step) * width + width / 2 : step;
}

static uint64_t *range_get(struct histogram *h, unsigned range)
{
	if (!h->ranges[range])
		h->ranges[range] = calloc(HISTOGRAM_STEPS, sizeof(uint64_t));
	return h->ranges[range];
}

/* Adds count, sum, minimum and maximum of `count` values. */
static void totals_add(struct histogram *h, uint64_t count, uint64_t sum, uint64_t min,
		       uint64_t max)
{
	if (!h->count || min < h->min_ns)
		h->min_ns = min;
	if (!h->count || max > h->max_ns)
		h->max_ns = max;
	h->count += count;
	if (__builtin_add_overflow(h->sum_ns, sum, &h->sum_ns))
		h->sum_ns = UINT64_MAX;
}

int histogram_add_many(struct histogram *h, uint64_t ns, uint64_t count)
{
	unsigned range = range_of(ns);
	uint64_t *steps = range_get(h, range), sum;

	if (!steps)
		return -ENOMEM;
	if (!count)
		return 0;
	steps[step_of(ns, range)] += count;
	if (__builtin_mul_overflow(ns, count, &sum))
		sum = UINT64_MAX;
	totals_add(h, count, sum, ns, ns);
	return 0;
}

int histogram_add(struct histogram *h, uint64_t ns)
{
	unsigned range = range_of(ns);
	uint64_t *steps = range_get(h, range);

	if (!steps)
		return -ENOMEM;
	steps[step_of(ns, range)]++;
	totals_add(h, 1, ns, ns, ns);
	return 0;
}

int histogram_merge(struct histogram *to, const struct histogram *from)
{
	for (unsigned r = 0; r < HISTOGRAM_RANGES; r++) {
		if (from->ranges[r] && !range_get(to, r))
			return -ENOMEM;
	}
	for (unsigned r = 0; r < HISTOGRAM_RANGES; r++) {
		for (unsigned s = 0; from->ranges[r] && s < HISTOGRAM_STEPS; s++)
			to->ranges[r][s] += from->ranges[r][s];
	}
	if (from->count)
		totals_add(to, from->count, from->sum_ns, from->min_ns, from->max_ns);
	return 0;
}

uint64_t histogram_quantile(const struct histogram *h, double share)
{
	double wanted = ceil(share * (double)h->count);
	uint64_t rank = wanted >= 1 ? (uint64_t)wanted : 1, seen = 0;

	if (rank >= h->count)
		return h->max_ns;
	for (unsigned r = 0; r < HISTOGRAM_RANGES; r++) {
		for (unsigned s = 0; h->ranges[r] && s < HISTOGRAM_STEPS; s++) {
			uint64_t middle = middle_of(r, s);

			seen += h->ranges[r][s];
			if (seen < rank)
				continue;
			return middle < h->min_ns   ? h->min_ns
			       : middle > h->max_ns ? h->max_ns
						    : middle;
		}
	}
	return h->max_ns;
}

uint64_t histogram_below(const struct histogram *h, unsigned exponent)
{
	uint64_t below = 0;

	/* Range r > 0 holds the power of two from 2^(STEP_BITS + r - 1) on. */
	for (unsigned r = 0; r + HISTOGRAM_STEP_BITS <= exponent && r < HISTOGRAM_RANGES; r++) {
		for (unsigned s = 0; h->ranges[r] && s < HISTOGRAM_STEPS; s++)
			below += h->ranges[r][s];
	}
	return below;
}

uint64_t histogram_below_step(const struct histogram *h, unsigned exponent, unsigned step)
{
	uint64_t below = histogram_below(h, exponent + HISTOGRAM_STEP_BITS);
	const uint64_t *steps = h->ranges[exponent + 1];

	for (unsigned s = 0; steps && s < step; s++)
		below += steps[s];
	return below;
}

static unsigned coarse_of(uint64_t ns)
{
	const unsigned bits = HISTOGRAM_COARSE_STEP_BITS;
	unsigned power;

	if (ns < 1u << bits)
		return (unsigned)ns;
	power = 63u - (unsigned)__builtin_clzll(ns);
	return ((power - bits + 1) << bits) + (unsigned)(ns >> (power - bits)) - (1u << bits);
}

void histogram_coarse(const struct histogram *h, uint64_t *counts)
{
	for (unsigned r = 0; r < HISTOGRAM_RANGES; r++) {
		for (unsigned s = 0; h->ranges[r] && s < HISTOGRAM_STEPS; s++) {
			if (h->ranges[r][s])
				counts[coarse_of(middle_of(r, s))] += h->ranges[r][s];
		}
	}
}

void histogram_fini(struct histogram *h)
{
	for (unsigned r = 0; r < HISTOGRAM_RANGES; r++)
		free(h->ranges[r]);
	memset(h, 0, sizeof(*h));
}
