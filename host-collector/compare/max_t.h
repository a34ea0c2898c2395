/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests which figures moved between two groups of runs: a permutation test over runs with the
 * single-step maxT method (Westfall and Young, Resampling-Based Multiple Testing, 1993).
 *
 * If nothing changed, each other split of the runs into groups of the same sizes is as likely as
 * the observed one. For each split, the test computes the largest t statistic of all figures (for
 * falls, the smallest) and compares each figure's observed t with it. Therefore the probability
 * that any figure is reported although nothing changed is at most the level, for any number of
 * figures, any dependence between them and any distribution.
 *
 * Before the test, each value is limited to two robust standard deviations from the median of both
 * groups, so that one outlier does not hide a shift. All splits are treated alike, so the
 * probability above stays valid.
 */
#ifndef COMPARE_MAX_T_H
#define COMPARE_MAX_T_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Up to this number, all splits are evaluated; otherwise this many random splits, the same ones in
 * each call. */
enum { MAX_T_SPLITS = 20000 };

struct max_t_row {
	const double *values; /* of the base runs, then of the new runs; NAN: not measured */
	double floor;         /* standard deviation that the measurement alone causes, > 0 */
	/* Results: adjusted p-values of a rise and of a fall, and the observed t statistic. */
	double p_up, p_down;
	double t;
};

/* Fills the results of all rows. *splits: number of evaluated splits; *complete: whether these are
 * all. Returns 0, -ENOMEM, or -EINVAL if a group has fewer than two runs. */
int max_t_test(struct max_t_row *rows, size_t n_rows, size_t n_base, size_t n_new, uint64_t *splits,
	       bool *complete);

#endif
