/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints the figures of a benchmark for the table of tests/bench/run. Each figure is one line. Tabs
 * separate its fields:
 *
 *   figure NAME VALUE UNIT LOW HIGH GOAL PEER
 *
 * VALUE is the median of the rounds, LOW and HIGH are their quartiles. A field without content is
 * "-". figures.py prints such lines from Python, and reads them.
 */
#ifndef BENCH_FIGURE_H
#define BENCH_FIGURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum figure_goal { FIGURE_NO_GOAL, FIGURE_AT_MOST, FIGURE_AT_LEAST };

struct figure {
	const char *name; /* what is measured; unique in a run */
	const char *unit;
	enum figure_goal goal_is;
	double goal;
	const char *peer; /* what was measured beside it in the same run; NULL: nothing */
};

static inline int figure_order(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the `n` values. */
static inline double figure_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), figure_order);
	return values[n / 2];
}

/* Sorts the `n` values of the rounds and prints the figure. Returns whether the median meets the
 * goal; true without a goal. */
static inline bool figure_print(const struct figure *f, double *values, size_t n)
{
	const double median = figure_median(values, n);

	printf("figure\t%s\t%.6g\t%s\t%.6g\t%.6g\t", f->name, median, f->unit, values[n / 4],
	       values[n - 1 - n / 4]);
	if (f->goal_is == FIGURE_NO_GOAL)
		printf("-");
	else
		printf("%s %.6g", f->goal_is == FIGURE_AT_MOST ? "<=" : ">=", f->goal);
	printf("\t%s\n", f->peer ? f->peer : "-");
	return f->goal_is == FIGURE_NO_GOAL ||
	       (f->goal_is == FIGURE_AT_MOST ? median <= f->goal : median >= f->goal);
}

/* Prints the figure of one value that has no rounds. */
static inline bool figure_print_one(const struct figure *f, double value)
{
	return figure_print(f, &value, 1);
}

#endif
