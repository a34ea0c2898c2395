/* SPDX-License-Identifier: GPL-2.0-only */
/* Quantiles against exact ones on heavy-tailed samples; merging in any order; the extremes. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "clock/histogram.h"

enum { SAMPLES = 20000 };

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(*state >> 11) + 0.5) / (double)(1ull << 53);
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Pareto with an infinite mean, an exponential, and a constant with rare giants. */
static uint64_t draw(unsigned shape, uint64_t *state)
{
	double u = uniform(state);

	switch (shape) {
	case 0:
		return (uint64_t)(100 * pow(u, -1 / 0.9));
	case 1:
		return (uint64_t)(-50000 * log(u));
	default:
		return u < 0.999 ? 1000 : (uint64_t)(1e12 * u);
	}
}

static void quantiles_are_within_a_percent(void **unused)
{
	static const double shares[] = {0, 0.01, 0.5, 0.95, 0.99, 0.999, 1};
	static uint64_t samples[SAMPLES];
	uint64_t state = 1;

	(void)unused;
	for (unsigned shape = 0; shape < 3; shape++) {
		struct histogram h = {0};

		for (unsigned i = 0; i < SAMPLES; i++) {
			samples[i] = draw(shape, &state);
			assert_int_equal(histogram_add(&h, samples[i]), 0);
		}
		qsort(samples, SAMPLES, sizeof(samples[0]), ascending);
		for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
			double rank = ceil(shares[i] * SAMPLES);
			double exact = (double)samples[rank >= 1 ? (size_t)rank - 1 : 0];
			double told = (double)histogram_quantile(&h, shares[i]);

			assert_true(fabs(told - exact) <= 0.01 * exact);
		}
		assert_int_equal(h.count, SAMPLES);
		assert_int_equal(h.min_ns, samples[0]);
		assert_int_equal(h.max_ns, samples[SAMPLES - 1]);
		histogram_fini(&h);
	}
}

static void equal(const struct histogram *a, const struct histogram *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->sum_ns, b->sum_ns);
	assert_int_equal(a->min_ns, b->min_ns);
	assert_int_equal(a->max_ns, b->max_ns);
	for (unsigned r = 0; r < HISTOGRAM_RANGES; r++) {
		assert_int_equal(!a->ranges[r], !b->ranges[r]);
		if (a->ranges[r])
			assert_memory_equal(a->ranges[r], b->ranges[r],
					    HISTOGRAM_STEPS * sizeof(uint64_t));
	}
}

static void merging_is_associative(void **unused)
{
	struct histogram all = {0}, left = {0}, right = {0}, tail = {0}, part[3] = {{0}};
	uint64_t state = 7;

	(void)unused;
	for (unsigned i = 0; i < SAMPLES; i++) {
		uint64_t ns = draw(i % 3, &state);

		assert_int_equal(histogram_add(&all, ns), 0);
		assert_int_equal(histogram_add(&part[i % 3], ns), 0);
	}
	for (unsigned i = 0; i < 3; i++) /* (a + b) + c */
		assert_int_equal(histogram_merge(&left, &part[i]), 0);
	assert_int_equal(histogram_merge(&tail, &part[2]), 0); /* a + (c + b) */
	assert_int_equal(histogram_merge(&tail, &part[1]), 0);
	assert_int_equal(histogram_merge(&right, &part[0]), 0);
	assert_int_equal(histogram_merge(&right, &tail), 0);
	equal(&all, &left);
	equal(&all, &right);
	for (unsigned i = 0; i < 3; i++)
		histogram_fini(&part[i]);
	histogram_fini(&all);
	histogram_fini(&left);
	histogram_fini(&right);
	histogram_fini(&tail);
}

static void the_extremes_have_buckets(void **unused)
{
	static const uint64_t values[] = {0, 1, 63, 64, 127, 128, UINT64_MAX / 2, UINT64_MAX};
	struct histogram h = {0};

	(void)unused;
	assert_int_equal(histogram_quantile(&h, 0.5), 0);
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct histogram one = {0};

		assert_int_equal(histogram_add(&one, values[i]), 0);
		assert_int_equal(histogram_quantile(&one, 0.5), values[i]);
		assert_int_equal(histogram_merge(&h, &one), 0);
		histogram_fini(&one);
	}
	assert_int_equal(histogram_quantile(&h, 0), 0);
	assert_int_equal(histogram_quantile(&h, 1), UINT64_MAX);
	assert_int_equal(h.sum_ns, UINT64_MAX);
	histogram_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_within_a_percent),
		cmocka_unit_test(merging_is_associative),
		cmocka_unit_test(the_extremes_have_buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
