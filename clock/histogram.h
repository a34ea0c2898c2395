/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A log-linear histogram of times. Each power of two has HISTOGRAM_STEPS buckets of equal width. A
 * quantile is the middle of its bucket, so its error is at most half a bucket: 1 / (2 *
 * HISTOGRAM_STEPS) = 0.8 % of the value. Memory is allocated per power of two when values appear.
 * Merging adds counts; it is associative and loses no information.
 */
#ifndef CLOCK_HISTOGRAM_H
#define CLOCK_HISTOGRAM_H

#include <stdint.h>

enum {
	HISTOGRAM_STEP_BITS = 6,
	HISTOGRAM_STEPS = 1 << HISTOGRAM_STEP_BITS,
	HISTOGRAM_RANGES = 64 - HISTOGRAM_STEP_BITS + 1,
};

/* A histogram of all zeros is empty. */
struct histogram {
	uint64_t count;
	uint64_t sum_ns; /* saturates */
	uint64_t min_ns, max_ns;
	uint64_t *ranges[HISTOGRAM_RANGES];
};

/* Adds one value. Returns 0, or -ENOMEM and adds nothing. */
int histogram_add(struct histogram *h, uint64_t ns);
/* Adds `count` values of about `ns` each. Returns 0, or -ENOMEM and adds nothing. */
int histogram_add_many(struct histogram *h, uint64_t ns, uint64_t count);
/* Adds `from` to `to`. Returns 0, or -ENOMEM and leaves `to` unchanged. */
int histogram_merge(struct histogram *to, const struct histogram *from);
/* Returns the value that `share` (0..1) of all values do not exceed (nearest rank), within 0.8 %
 * and between the smallest and the largest value; 0 if the histogram is empty. */
uint64_t histogram_quantile(const struct histogram *h, double share);
/* Returns the exact number of values below 2^exponent ns. exponent: HISTOGRAM_STEP_BITS to 63. */
uint64_t histogram_below(const struct histogram *h, unsigned exponent);
/* Returns the exact number of values below (HISTOGRAM_STEPS + step) * 2^exponent ns. step: 0 to
 * HISTOGRAM_STEPS - 1; exponent: 0 to HISTOGRAM_RANGES - 2. */
uint64_t histogram_below_step(const struct histogram *h, unsigned exponent, unsigned step);

/* Buckets for other programs (docs/fleet.md): 16 for each power of two. */
enum { HISTOGRAM_COARSE_STEP_BITS = 4, HISTOGRAM_COARSE_BUCKETS = 976 };
/* Adds the number of values in each coarse bucket to counts[HISTOGRAM_COARSE_BUCKETS]. Exact. */
void histogram_coarse(const struct histogram *h, uint64_t *counts);
void histogram_fini(struct histogram *h);

#endif
