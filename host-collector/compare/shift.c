/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/compare/shift.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { EXACT_MAX = 20 }; /* values in a group; more: the normal approximation */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * The largest c with P(U < c) <= tail, U the Mann-Whitney statistic of n and m values. Counts the
 * ways to each U value by value: ways(u; n, m) = ways(u - m; n - 1, m) + ways(u; n, m - 1), as one
 * product of (1 - q^(m + i)) / (1 - q^i) for i = 1..n.
 */
static int rank_exact(size_t n, size_t m, double tail, size_t *rank)
{
	size_t most = n * m;
	double *ways = calloc(most + 1, sizeof(*ways)), all = 0, below = 0;

	if (!ways)
		return -ENOMEM;
	ways[0] = 1;
	for (size_t i = 1; i <= n; i++) {
		for (size_t u = most; u >= m + i; u--)
			ways[u] -= ways[u - m - i];
		for (size_t u = i; u <= most; u++)
			ways[u] += ways[u - i];
	}
	for (size_t u = 0; u <= most; u++)
		all += ways[u];
	*rank = 0;
	while (*rank < most && below + ways[*rank] <= tail * all)
		below += ways[(*rank)++];
	free(ways);
	return 0;
}

/* The point that a standard normal value exceeds with this probability, by bisection. */
static double normal_point(double tail)
{
	double low = 0, high = 40;

	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (erfc(middle / sqrt(2)) / 2 > tail)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static size_t rank_normal(size_t n, size_t m, double tail)
{
	double product = (double)n * (double)m;
	double rank = product / 2 - normal_point(tail) * sqrt(product * (double)(n + m + 1) / 12);

	return rank > 0 ? (size_t)rank : 0;
}

int shift_estimate(const double *base, size_t n_base, const double *new, size_t n_new,
		   double confidence, struct shift *out)
{
	size_t n = n_base * n_new, rank = 0, at = 0;
	double tail = (1 - confidence) / 2;
	double *differences;
	int err = 0;

	if (!n)
		return -EINVAL;
	differences = malloc(n * sizeof(*differences));
	if (!differences)
		return -ENOMEM;
	out->superiority = 0;
	for (size_t i = 0; i < n_base; i++) {
		for (size_t j = 0; j < n_new; j++) {
			differences[at++] = new[j] - base[i];
			out->superiority += new[j] > base[i] ? 1 : new[j] < base[i] ? 0 : 0.5;
		}
	}
	out->superiority /= (double)n;
	qsort(differences, n, sizeof(*differences), ascending);
	out->estimate = (differences[(n - 1) / 2] + differences[n / 2]) / 2;
	if (n_base <= EXACT_MAX && n_new <= EXACT_MAX)
		err = rank_exact(n_base, n_new, tail, &rank);
	else
		rank = rank_normal(n_base, n_new, tail);
	if (rank < 1)
		rank = 1;
	out->low = differences[rank - 1];
	out->high = differences[n - rank];
	free(differences);
	return err;
}
