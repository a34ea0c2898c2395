/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lines y = c + s*d that pass below some points and above others: a linear programme in two
 * variables (c, s), solved by cutting planes. Every intermediate result is an outer bound, so what
 * comes out holds the exact answer however early it stops. O(points), a handful of passes.
 */
#ifndef CLOCK_FEASIBLE_H
#define CLOCK_FEASIBLE_H

#include <stdbool.h>
#include <stddef.h>

enum { FEASIBLE_POINTS_MAX = 128 };

/* Points (d, v), both relative to the place where the line's value is wanted. */
struct feasible_points {
	size_t n;
	double d[FEASIBLE_POINTS_MAX];
	double v[FEASIBLE_POINTS_MAX];
};

struct feasible_set {
	struct feasible_points above; /* the line passes at or below these */
	struct feasible_points below; /* and at or above these */
	double slope_min, slope_max;
};

struct feasible_lines {
	double lo, hi;               /* c, the value at d = 0 */
	double slope_min, slope_max; /* s */
};

/* false if no line satisfies all. Both sides must hold at least one point. */
bool feasible_solve(const struct feasible_set *set, struct feasible_lines *out);

#endif
