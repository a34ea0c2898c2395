/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Estimates by how much two groups of values differ: the Hodges-Lehmann estimate (the median of all
 * differences between a new and a base value) and its distribution-free confidence interval, from
 * the distribution of the Mann-Whitney statistic (Hollander, Wolfe, Chicken: Nonparametric
 * Statistical Methods, 3rd ed., 4.2, 4.3).
 */
#ifndef COMPARE_SHIFT_H
#define COMPARE_SHIFT_H

#include <stddef.h>

struct shift {
	double estimate, low, high; /* low and high: confidence interval */
	/* Probability that a new value exceeds a base value; ties count half. 0.5: no
	 * difference. */
	double superiority;
};

/* Estimates the shift from `base` to `new`. confidence: of the interval, 0 to 1; with few values
 * the interval may have a lower confidence. Returns 0, -EINVAL if a group is empty, or -ENOMEM. */
int shift_estimate(const double *base, size_t n_base, const double *new, size_t n_new,
		   double confidence, struct shift *out);

#endif
