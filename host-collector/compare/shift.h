/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * By how much two groups of values differ: the Hodges-Lehmann estimate (the median of all
 * differences of a new and a base value) with its distribution-free confidence interval, from the
 * distribution of the Mann-Whitney statistic (Hollander, Wolfe, Chicken: Nonparametric Statistical
 * Methods, 3rd ed., 4.2, 4.3).
 */
#ifndef COMPARE_SHIFT_H
#define COMPARE_SHIFT_H

#include <stddef.h>

struct shift {
	double estimate, low, high; /* low..high: the interval */
	/* How often a new value is the larger one; ties count half. 0.5: no difference. */
	double superiority;
};

/* confidence: of the interval, 0..1; with too few values the interval is as wide as they allow. 0,
 * -EINVAL (an empty group), -ENOMEM. */
int shift_estimate(const double *base, size_t n_base, const double *new, size_t n_new,
		   double confidence, struct shift *out);

#endif
