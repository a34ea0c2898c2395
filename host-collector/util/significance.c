/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/significance.h"

#include <math.h>

struct significance_sample significance_sample_of(const double *values, size_t n)
{
	struct significance_sample s = {.n = n};

	for (size_t i = 0; i < n; i++)
		s.mean += values[i] / (double)n;
	for (size_t i = 0; n > 1 && i < n; i++)
		s.variance += (values[i] - s.mean) * (values[i] - s.mean) / (double)(n - 1);
	return s;
}

/* The continued fraction of the incomplete beta function (Lentz); Numerical Recipes, 6.4. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), h;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	h = d;
	for (int m = 1; m <= 300; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 + even * d;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = 1 + even / c;
		c = fabs(c) < tiny ? tiny : c;
		h *= d * c;
		d = 1 + odd * d;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = 1 + odd / c;
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		h *= step;
		if (fabs(step - 1) < 1e-12)
			break;
	}
	return h;
}

/* The regularised incomplete beta function I_x(a, b). */
static double beta_share(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double significance_means(const struct significance_sample *a, const struct significance_sample *b)
{
	double va = a->variance / (double)a->n, vb = b->variance / (double)b->n;
	double t, freedom;

	if (a->n < 2 || b->n < 2)
		return 1;
	if (va + vb <= 0)
		return a->mean == b->mean;
	t = (a->mean - b->mean) / sqrt(va + vb);
	freedom = (va + vb) * (va + vb) /
		  (va * va / (double)(a->n - 1) + vb * vb / (double)(b->n - 1));
	return beta_share(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double significance_shares(double hits_a, double n_a, double hits_b, double n_b)
{
	double pooled = (hits_a + hits_b) / (n_a + n_b), spread;

	if (n_a <= 0 || n_b <= 0)
		return 1;
	spread = sqrt(pooled * (1 - pooled) * (1 / n_a + 1 / n_b));
	if (spread <= 0)
		return 1;
	return erfc(fabs(hits_a / n_a - hits_b / n_b) / spread / M_SQRT2);
}
