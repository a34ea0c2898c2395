/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the lines y = c + s*d that pass below some points and above others. This is a linear
 * program in two variables (c, s), solved with cutting planes. Each intermediate result is an
 * outer bound, so the result contains the exact answer even if the solver stops early. The cost is
 * a few passes over the points.
 */
#ifndef CLOCK_FEASIBLE_H
#define CLOCK_FEASIBLE_H

#include <stdbool.h>
#include <stddef.h>

enum { FEASIBLE_POINTS_MAX = 128 };

/* Points (d, v), relative to the place at which the value of the line is needed. */
struct feasible_points {
	size_t n;
	double d[FEASIBLE_POINTS_MAX];
	double v[FEASIBLE_POINTS_MAX];
};

struct feasible_set {
	struct feasible_points above; /* the line passes at or below these points */
	struct feasible_points below; /* the line passes at or above these points */
	double slope_min, slope_max;
};

struct feasible_lines {
	double lo, hi;               /* c, the value at d = 0 */
	double slope_min, slope_max; /* s */
};

/* Bounds c and s over all such lines. Returns false if there is none. Both sides need at least one
 * point. */
bool feasible_solve(const struct feasible_set *set, struct feasible_lines *out);

#endif
