/* SPDX-License-Identifier: GPL-2.0-only */
/* Compares quantiles with exact ones on samples with heavy tails; tests merging in any order,
 * and extreme values. */
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

enum { SAMPLES = 20000, SEEDS = 5, SHARDS = 16 };

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

/* Pareto with an infinite mean and one with a finite one, a log-normal over nine powers of ten, an
 * exponential, two humps a million apart, and a constant with rare giants. */
enum { SHAPES = 6 };

static uint64_t draw(unsigned shape, uint64_t *state)
{
	double u = uniform(state), v;

	switch (shape) {
	case 0:
		return (uint64_t)(100 * pow(u, -1 / 0.9));
	case 1:
		return (uint64_t)(2000 * pow(u, -1 / 1.5));
	case 2:
		v = uniform(state);
		return (uint64_t)exp(10 + 2.5 * sqrt(-2 * log(u)) * cos(2 * M_PI * v));
	case 3:
		return (uint64_t)(-50000 * log(u));
	case 4:
		v = uniform(state);
		return (uint64_t)((v < 0.97 ? 300 : 3e8) * (1 + u));
	default:
		return u < 0.999 ? 1000 : (uint64_t)(1e12 * u);
	}
}

/* The value of the nearest rank: what a quantile means here. */
static uint64_t exact_quantile(const uint64_t *sorted, size_t n, double share)
{
	double rank = ceil(share * (double)n);

	return sorted[rank >= 1 ? (size_t)rank - 1 : 0];
}

static void quantiles_are_within_a_percent(void **unused)
{
	static const double shares[] = {0,   0.001, 0.01, 0.1,   0.25,   0.5, 0.75,
					0.9, 0.95,  0.99, 0.999, 0.9999, 1};
	static uint64_t samples[SAMPLES];

	(void)unused;
	for (unsigned run = 0; run < SHAPES * SEEDS; run++) {
		uint64_t state = run / SHAPES + 1;
		struct histogram h = {0};

		for (unsigned i = 0; i < SAMPLES; i++) {
			samples[i] = draw(run % SHAPES, &state);
			assert_int_equal(histogram_add(&h, samples[i]), 0);
		}
		qsort(samples, SAMPLES, sizeof(samples[0]), ascending);
		for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
			double exact = (double)exact_quantile(samples, SAMPLES, shares[i]);
			double reported = (double)histogram_quantile(&h, shares[i]);

			if (fabs(reported - exact) > 0.01 * exact)
				fail_msg("shape %u, seed %u: p%g is %.0f, told %.0f", run % SHAPES,
					 run / SHAPES + 1, 100 * shares[i], exact, reported);
		}
		assert_int_equal(h.count, SAMPLES);
		assert_int_equal(h.min_ns, samples[0]);
		assert_int_equal(h.max_ns, samples[SAMPLES - 1]);
		histogram_fini(&h);
	}
}

/* Every bucket from its first to its last value; neighbours far away, so that the smallest and the
 * largest value, which are known exactly, do not help. */
static void every_bucket_is_within_a_percent(void **unused)
{
	(void)unused;
	for (unsigned bit = 2; bit < 62; bit++) {
		for (unsigned step = 0; step < 4 * HISTOGRAM_STEPS; step++) {
			uint64_t value = (1ull << bit) + (uint64_t)((double)(1ull << bit) * step /
								    (4 * HISTOGRAM_STEPS));
			struct histogram h = {0};
			double reported;

			assert_int_equal(histogram_add(&h, value / 2), 0);
			assert_int_equal(histogram_add(&h, value), 0);
			assert_int_equal(histogram_add(&h, value * 2), 0);
			reported = (double)histogram_quantile(&h, 0.5);
			assert_true(fabs(reported - (double)value) <= 0.01 * (double)value);
			histogram_fini(&h);
		}
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
		uint64_t ns = draw(i % SHAPES, &state);

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

/* Shards merged two by two, whichever two, until one is left: the same as all in one. */
static void any_tree_of_merges_gives_the_same(void **unused)
{
	(void)unused;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct histogram all = {0}, shard[SHARDS] = {{0}};
		uint64_t state = seed;

		for (unsigned i = 0; i < SAMPLES; i++) {
			uint64_t ns = draw(i % SHAPES, &state);

			assert_int_equal(histogram_add(&all, ns), 0);
			assert_int_equal(
				histogram_add(&shard[(unsigned)(uniform(&state) * SHARDS)], ns), 0);
		}
		for (unsigned left = SHARDS; left > 1; left--) {
			unsigned to = (unsigned)(uniform(&state) * left);
			unsigned from = (to + 1 + (unsigned)(uniform(&state) * (left - 1))) % left;

			assert_int_equal(histogram_merge(&shard[to], &shard[from]), 0);
			histogram_fini(&shard[from]);
			/* The last one moves into the gap; it may be the one that grew. */
			if (from != left - 1)
				shard[from] = shard[left - 1];
			memset(&shard[left - 1], 0, sizeof(shard[0]));
		}
		equal(&all, &shard[0]);
		for (double share = 0; share <= 1; share += 0.01)
			assert_int_equal(histogram_quantile(&all, share),
					 histogram_quantile(&shard[0], share));
		histogram_fini(&all);
		histogram_fini(&shard[0]);
	}
}

static void merging_nothing_changes_nothing(void **unused)
{
	struct histogram h = {0}, empty = {0}, before = {0};

	(void)unused;
	for (uint64_t ns = 5; ns < 100000; ns = 3 * ns + 1) {
		assert_int_equal(histogram_add(&h, ns), 0);
		assert_int_equal(histogram_add(&before, ns), 0);
	}
	assert_int_equal(histogram_merge(&h, &empty), 0);
	equal(&before, &h);
	assert_int_equal(histogram_merge(&empty, &h), 0);
	equal(&before, &empty);
	histogram_fini(&h);
	histogram_fini(&empty);
	histogram_fini(&before);
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
		cmocka_unit_test(every_bucket_is_within_a_percent),
		cmocka_unit_test(merging_is_associative),
		cmocka_unit_test(any_tree_of_merges_gives_the_same),
		cmocka_unit_test(merging_nothing_changes_nothing),
		cmocka_unit_test(the_extremes_have_buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
