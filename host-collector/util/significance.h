/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests whether two samples differ by more than chance. Each test returns a two-sided p-value: the
 * probability that chance alone produces at least this difference. */
#ifndef UTIL_SIGNIFICANCE_H
#define UTIL_SIGNIFICANCE_H

#include <stddef.h>

struct significance_sample {
	size_t n;
	double mean, variance; /* sample variance: divided by n - 1 */
};
/* Returns the mean and variance of `values`. The variance of fewer than two values is 0. */
struct significance_sample significance_sample_of(const double *values, size_t n);

/* Compares two means with Welch's t-test, which allows unequal variances. Returns 1 if a sample
 * has fewer than two values. If both variances are 0, returns 1 for equal means and 0 otherwise. */
double significance_means(const struct significance_sample *a, const struct significance_sample *b);
/* Compares the shares hits_a / n_a and hits_b / n_b with the pooled two-proportion z-test. Returns
 * 1 if a sample is empty or all results are equal. */
double significance_shares(double hits_a, double n_a, double hits_b, double n_b);

#endif
