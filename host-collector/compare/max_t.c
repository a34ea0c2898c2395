/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/compare/max_t.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const double robust_limit = 2;
static const double mad_to_deviation = 1.4826; /* of a normal distribution */
static const double rounding = 1e-9;           /* equal but for the order of addition */

/* A row made ready: centred, missing values 0. */
struct prepared {
	double *x;
	double *known; /* 1 or 0 */
	double total, squares, n, floor;
};

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), ascending);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void row_prepare(const struct max_t_row *row, size_t n, double *scratch, struct prepared *p)
{
	double middle, spread, mean;
	size_t known = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isnan(row->values[i]))
			scratch[known++] = row->values[i];
	}
	middle = median(scratch, known);
	for (size_t i = 0; i < known; i++)
		scratch[i] = fabs(scratch[i] - middle);
	spread = mad_to_deviation * median(scratch, known);
	spread = robust_limit * (spread > row->floor ? spread : row->floor);
	mean = 0;
	for (size_t i = 0; i < n; i++) {
		p->known[i] = !isnan(row->values[i]);
		p->x[i] = 0;
		if (p->known[i] > 0)
			p->x[i] = fmax(-spread, fmin(spread, row->values[i] - middle));
		mean += p->x[i];
	}
	p->n = (double)known;
	p->floor = row->floor;
	p->total = p->squares = 0;
	for (size_t i = 0; i < n && known; i++) {
		p->x[i] -= p->known[i] * mean / (double)known;
		p->total += p->x[i];
		p->squares += p->x[i] * p->x[i];
	}
}

/* The t statistic of the split in which `members` are the new runs; 0 if a group is too small. */
static double row_t(const struct prepared *p, const size_t *members, size_t n_members)
{
	double sum = 0, n = 0, rest, difference, variance;

	for (size_t i = 0; i < n_members; i++) {
		sum += p->x[members[i]];
		n += p->known[members[i]];
	}
	rest = p->n - n;
	if (n < 2 || rest < 2)
		return 0;
	difference = sum / n - (p->total - sum) / rest;
	variance = p->squares - difference * difference * n * rest / p->n;
	variance = fmax(variance, 0) / (p->n - 2) + p->floor * p->floor;
	return difference / sqrt(variance * (1 / n + 1 / rest));
}

/* Returns the number of splits, at most `limit` + 1. */
static uint64_t max_t_splits(size_t n_base, size_t n_new, uint64_t limit)
{
	size_t few = n_base < n_new ? n_base : n_new, all = n_base + n_new;
	double splits = 1;

	for (size_t i = 1; i <= few; i++) {
		splits = splits * (double)(all - few + i) / (double)i;
		if (splits > (double)limit)
			return limit + 1;
	}
	return (uint64_t)llround(splits);
}

/* The next k of n in lexicographic order; false after the last. */
static bool members_next(size_t *members, size_t k, size_t n)
{
	size_t i = k;

	while (i && members[i - 1] == n - k + i - 1)
		i--;
	if (!i)
		return false;
	members[i - 1]++;
	for (; i < k; i++)
		members[i] = members[i - 1] + 1;
	return true;
}

/* splitmix64, see simulate/engine.c; the same splits each time: a gate gives one answer. */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* The first k of a random order of n. */
static void members_draw(size_t *members, size_t k, size_t *order, size_t n, uint64_t *state)
{
	for (size_t i = 0; i < k; i++) {
		size_t at = i + random_next(state) % (n - i), taken = order[at];

		order[at] = order[i];
		order[i] = members[i] = taken;
	}
}

struct test {
	struct max_t_row *rows;
	struct prepared *prepared;
	size_t n_rows, n, k;
};

/* Adds 1 to the p_up and p_down of each figure whose observed t this split reaches. */
static void split_count(const struct test *t, const size_t *members)
{
	double most = -INFINITY, least = INFINITY;

	for (size_t r = 0; r < t->n_rows; r++) {
		double value = row_t(&t->prepared[r], members, t->k);

		most = fmax(most, value);
		least = fmin(least, value);
	}
	for (size_t r = 0; r < t->n_rows; r++) {
		struct max_t_row *row = &t->rows[r];

		row->p_up += most >= row->t - rounding;
		row->p_down += least <= row->t + rounding;
	}
}

/* Returns how many splits were counted. */
static uint64_t splits_count(const struct test *t, size_t *members, size_t *order, bool complete)
{
	uint64_t splits = 0, state = 1;

	if (complete) {
		for (size_t i = 0; i < t->k; i++)
			members[i] = i;
		do {
			split_count(t, members);
			splits++;
		} while (members_next(members, t->k, t->n));
		return splits;
	}
	for (size_t i = 0; i < t->k; i++)
		members[i] = t->n - t->k + i; /* what was seen is one of the splits */
	for (size_t i = 0; i < t->n; i++)
		order[i] = i;
	for (; splits < MAX_T_SPLITS; splits++) {
		split_count(t, members);
		members_draw(members, t->k, order, t->n, &state);
	}
	return splits;
}

int max_t_test(struct max_t_row *rows, size_t n_rows, size_t n_base, size_t n_new, uint64_t *splits,
	       bool *complete)
{
	size_t n = n_base + n_new;
	struct test t = {.rows = rows, .n_rows = n_rows, .n = n, .k = n_new};
	double *numbers = calloc(2 * n * n_rows + n + 1, sizeof(*numbers));
	size_t *indices = calloc(2 * n + 1, sizeof(*indices));
	int err = 0;

	t.prepared = calloc(n_rows + 1, sizeof(*t.prepared));
	if (n_base < 2 || n_new < 2)
		err = -EINVAL;
	else if (!numbers || !indices || !t.prepared)
		err = -ENOMEM;
	if (err)
		goto out;
	for (size_t i = 0; i < n_new; i++)
		indices[i] = n_base + i;
	for (size_t r = 0; r < n_rows; r++) {
		t.prepared[r].x = numbers + n + 2 * n * r;
		t.prepared[r].known = t.prepared[r].x + n;
		row_prepare(&rows[r], n, numbers, &t.prepared[r]);
		rows[r].t = row_t(&t.prepared[r], indices, n_new);
		rows[r].p_up = rows[r].p_down = 0;
	}
	*complete = max_t_splits(n_base, n_new, MAX_T_SPLITS) <= MAX_T_SPLITS;
	*splits = splits_count(&t, indices, indices + n, *complete);
	for (size_t r = 0; r < n_rows; r++) {
		rows[r].p_up /= (double)*splits;
		rows[r].p_down /= (double)*splits;
	}
out:
	free(t.prepared);
	free(numbers);
	free(indices);
	return err;
}
