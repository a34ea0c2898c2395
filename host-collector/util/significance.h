/* SPDX-License-Identifier: GPL-2.0-only */
/* Is it a difference, or chance? Two-sided probabilities that chance alone does as much. */
#ifndef UTIL_SIGNIFICANCE_H
#define UTIL_SIGNIFICANCE_H

#include <stddef.h>

struct significance_sample {
	size_t n;
	double mean, variance; /* of the sample: divided by n - 1 */
};
/* variance is 0 for fewer than two values. */
struct significance_sample significance_sample_of(const double *values, size_t n);

/* Welch's t-test: the means of two samples whose variances may differ. 1 with fewer than two values
 * on a side; without any variance, 0 if the means differ. */
double significance_means(const struct significance_sample *a, const struct significance_sample *b);
/* Two-proportion z-test, pooled: hits_a of n_a against hits_b of n_b. */
double significance_shares(double hits_a, double n_a, double hits_b, double n_b);

#endif
