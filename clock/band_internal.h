/* SPDX-License-Identifier: GPL-2.0-only */
/* Internals that band.c (facts to knots) and band_convert.c (conversions) share. */
#ifndef CLOCK_BAND_INTERNAL_H
#define CLOCK_BAND_INTERNAL_H

#include <math.h>

#include "clock/band.h"
#include "clock/feasible.h"
#include "clock/minmax.h"

enum {
	FACTS_MAX = FEASIBLE_POINTS_MAX,
	FACTS_FRESH = 32, /* the newest facts, which are never thinned */
	/* The two ends of each epoch stay, so the knots must be more than four times as many. */
	KNOTS_MAX = 8192,
	EPOCHS_MAX = 1024,
	KNOTS_SHORT_MAX = 256, /* with a short memory */
	EPOCHS_SHORT_MAX = 32,
	IMPROVE_KNOTS = 64,
	BREAKS_MAX = 2,
	PAUSE_SLACK = 200, /* edges of a pause may be off by spacing / PAUSE_SLACK */
};

struct facts {
	size_t n;
	struct band_fact at[FACTS_MAX]; /* in order of arrival */
};

/* The map at x lies within [y + lo, y + hi]. */
struct knot {
	uint64_t x, y;
	double lo, hi;
};

struct slopes {
	double min, max;
};

struct epoch {
	size_t first; /* its first knot; it ends before the next epoch's first, or at n_knots */
	struct slopes before, after; /* at its first and at its last knot */
	bool paused;                 /* the clock of x was stopped from stopped_y to resumed_y */
	uint64_t stopped_y, resumed_y;
};

struct band {
	struct band_options options;
	double rounding; /* rounding error of the stamps in y: one tick of x plus one of y */
	bool broken;
	unsigned n_breaks; /* since the newest observation; above BREAKS_MAX: times unknown */
	uint64_t breaks[BREAKS_MAX]; /* in y */
	struct facts lower, upper;   /* of the current epoch */
	size_t n_knots, knots_allocated, knots_max;
	struct knot *knots;
	size_t n_epochs, epochs_max;
	uint64_t epochs_forgotten;
	struct epoch *epochs;
};

/* The map lies within [base + lo, base + hi]. */
struct range {
	uint64_t base;
	double lo, hi;
};

static inline double difference(uint64_t a, uint64_t b)
{
	return (double)(int64_t)(a - b);
}

/* Returns how far the map may bend away from its tangent at distance d, in y. */
static inline double bend(const struct band *b, double d)
{
	d = fabs(d);
	return smaller(b->options.wander * d * d / 2,
		       (b->options.slope_max - b->options.slope_min) * d);
}

/* Returns how far the map may bend away from a chord of width w, in y. */
static inline double chord_bend(const struct band *b, double w)
{
	return smaller(b->options.wander * w * w / 8,
		       (b->options.slope_max - b->options.slope_min) * w / 4);
}

/* Returns the index behind the last knot of epoch e. */
static inline size_t epoch_end(const struct band *b, size_t e)
{
	return e + 1 < b->n_epochs ? b->epochs[e + 1].first : b->n_knots;
}

/* Returns the range of the map at x in the current epoch; x must not precede it. *knot: last knot
 * at or before x. */
struct range band_range_now(const struct band *b, uint64_t x, size_t *knot);

#endif
