/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For a fixed slope s, the points above the line require c <= U(s) = min(v - s*d), and the points
 * below require c >= L(s) = max(v - s*d). U is concave, L is convex, and both are piecewise
 * linear. A slope is feasible if U - L >= 0. The extreme values of c are max U and min L over the
 * feasible slopes. Newton steps and tangents of a concave function never exclude a part of the
 * feasible set.
 */
#include "clock/feasible.h"

#include <math.h>

#include "clock/minmax.h"

enum { PASSES_MAX = 48 };

/* A tangent of a concave function at some slope. */
struct tangent {
	double value, gradient;
};

static struct tangent upper_at(const struct feasible_points *p, double s)
{
	struct tangent t = {INFINITY, 0};

	for (size_t i = 0; i < p->n; i++) {
		double c = p->v[i] - s * p->d[i];

		if (c < t.value)
			t = (struct tangent){c, -p->d[i]};
	}
	return t;
}

/* -L(s), so that both sides are concave. */
static struct tangent lower_at(const struct feasible_points *p, double s)
{
	struct tangent t = {INFINITY, 0};

	for (size_t i = 0; i < p->n; i++) {
		double c = s * p->d[i] - p->v[i];

		if (c < t.value)
			t = (struct tangent){c, p->d[i]};
	}
	return t;
}

/* The feasible end of the slopes seen from `s`, walking in `direction` (1 or -1). */
static bool slope_end(const struct feasible_set *set, double *s, double direction, double limit)
{
	for (int pass = 0; pass < PASSES_MAX; pass++) {
		struct tangent u = upper_at(&set->above, *s), l = lower_at(&set->below, *s);
		double room = u.value + l.value;
		double gradient = (u.gradient + l.gradient) * direction;

		if (room >= 0)
			return true;
		if (gradient <= 0)
			return false;
		*s -= room / gradient * direction;
		if ((*s - limit) * direction > 0)
			return false;
	}
	return true;
}

static double concave_max(struct tangent (*at)(const struct feasible_points *, double),
			  const struct feasible_points *p, double a, double b)
{
	struct tangent ta = at(p, a), tb = at(p, b);
	double best = larger(ta.value, tb.value);

	if (ta.gradient <= 0)
		return ta.value;
	if (tb.gradient >= 0)
		return tb.value;
	for (int pass = 0; pass < PASSES_MAX; pass++) {
		double s = (tb.value - ta.value + ta.gradient * a - tb.gradient * b) /
			   (ta.gradient - tb.gradient);
		struct tangent t;

		s = smaller(larger(s, a), b);
		best = ta.value + ta.gradient * (s - a);
		t = at(p, s);
		if (t.value >= best || t.gradient == 0)
			return larger(t.value, best);
		if (t.gradient > 0) {
			if (s <= a)
				return best;
			a = s;
			ta = t;
		} else {
			if (s >= b)
				return best;
			b = s;
			tb = t;
		}
	}
	return best;
}

bool feasible_solve(const struct feasible_set *set, struct feasible_lines *out)
{
	double s1 = set->slope_min, s2 = set->slope_max;

	if (!slope_end(set, &s1, 1, set->slope_max) || !slope_end(set, &s2, -1, set->slope_min))
		return false;
	if (s1 > s2) {
		/* One slope is left, and rounding has made its two ends cross. */
		double s = s1;

		s1 = s2;
		s2 = s;
	}
	out->slope_min = s1;
	out->slope_max = s2;
	out->hi = concave_max(upper_at, &set->above, s1, s2);
	out->lo = -concave_max(lower_at, &set->below, s1, s2);
	if (out->lo > out->hi) {
		double middle = (out->lo + out->hi) / 2;

		out->lo = out->hi = middle;
	}
	return true;
}
