/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A log-linear histogram of times: every power of two is cut into HISTOGRAM_STEPS equal buckets,
 * and a quantile is the middle of its bucket, so it is off by at most half a bucket: 1 / (2 *
 * HISTOGRAM_STEPS) = 0.8 % of the value. Memory comes per power of two, as values appear. Merging
 * adds counts: it is associative and loses nothing.
 */
#ifndef CLOCK_HISTOGRAM_H
#define CLOCK_HISTOGRAM_H

#include <stdint.h>

enum {
	HISTOGRAM_STEP_BITS = 6,
	HISTOGRAM_STEPS = 1 << HISTOGRAM_STEP_BITS,
	HISTOGRAM_RANGES = 64 - HISTOGRAM_STEP_BITS + 1,
};

/* All zero is an empty histogram. */
struct histogram {
	uint64_t count;
	uint64_t sum_ns; /* saturates */
	uint64_t min_ns, max_ns;
	uint64_t *ranges[HISTOGRAM_RANGES];
};

/* 0 or -ENOMEM, then nothing was added. */
int histogram_add(struct histogram *h, uint64_t ns);
/* `count` values of about `ns` each. 0 or -ENOMEM, then nothing was added. */
int histogram_add_many(struct histogram *h, uint64_t ns, uint64_t count);
/* Adds `from` to `to`. 0 or -ENOMEM, then `to` is as before. */
int histogram_merge(struct histogram *to, const struct histogram *from);
/* The value that `share` (0..1) of all values do not exceed (the nearest rank), within 0.8 % and
 * never outside the smallest and largest value; 0 if empty. */
uint64_t histogram_quantile(const struct histogram *h, double share);
/* How many values are below 2^exponent ns, exactly; exponent: HISTOGRAM_STEP_BITS to 63. */
uint64_t histogram_below(const struct histogram *h, unsigned exponent);
void histogram_fini(struct histogram *h);

#endif
