/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which figures moved between two groups of runs, and how sure is that? A permutation test over
 * runs: if nothing changed, which run belongs to which group is chance, so every other split of the
 * runs into groups of the same sizes was as likely to be seen. Each figure's t statistic is held
 * against the largest t of any figure in each split (the single-step maxT method of Westfall and
 * Young, Resampling-Based Multiple Testing, 1993): the probability that any figure at all alarms
 * although nothing changed is at most the level, however many there are and however they depend on
 * each other, and whatever their distributions.
 *
 * Values are pulled in to two robust standard deviations of their pooled median first, so that one
 * wild run hides no shift; that treats all splits alike, so the above stays true.
 */
#ifndef COMPARE_MAX_T_H
#define COMPARE_MAX_T_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Splits are gone through completely up to so many, else so many are drawn (always the same). */
enum { MAX_T_SPLITS = 20000 };

struct max_t_row {
	const double *values; /* of the base's runs, then of the new ones; NAN: not measured */
	double floor;         /* the standard deviation that measuring alone causes, > 0 */
	/* Out: the probability that chance shows a rise (a fall) like this in any figure. */
	double p_up, p_down;
	double t;
};

/* 0, -ENOMEM, or -EINVAL: a group of less than two. */
int max_t_test(struct max_t_row *rows, size_t n_rows, size_t n_base, size_t n_new, uint64_t *splits,
	       bool *complete);

#endif
