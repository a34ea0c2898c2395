/* SPDX-License-Identifier: GPL-2.0-only */
/* What band.c (facts to knots) and band_convert.c (knots to answers) share. */
#ifndef CLOCK_BAND_INTERNAL_H
#define CLOCK_BAND_INTERNAL_H

#include <math.h>

#include "clock/band.h"
#include "clock/feasible.h"
#include "clock/minmax.h"

enum {
	FACTS_MAX = FEASIBLE_POINTS_MAX,
	FACTS_FRESH = 32, /* the newest facts are never thinned */
	KNOTS_MAX = 8192,
	EPOCHS_MAX = 1024,
	IMPROVE_KNOTS = 64,
	BREAKS_MAX = 2,
	PAUSE_SLACK = 200, /* of the spacing: what a pause's edges may be told late or early */
};

struct facts {
	size_t n;
	struct band_fact at[FACTS_MAX]; /* in order of arrival */
};

/* The map at x lies in [y + lo, y + hi]. */
struct knot {
	uint64_t x, y;
	double lo, hi;
};

struct slopes {
	double min, max;
};

struct epoch {
	size_t first; /* its first knot; the next epoch's first, or n_knots, ends it */
	struct slopes before, after; /* at its first and last knot */
	bool paused; /* the clock of x stood still once since the epoch before, between... */
	uint64_t stopped_y, resumed_y;
};

struct band {
	struct band_options options;
	double rounding; /* stamps are rounded down: what one tick of x is worth, and one of y */
	bool broken;
	unsigned n_breaks; /* since the newest observation; beyond BREAKS_MAX: too many to tell */
	uint64_t breaks[BREAKS_MAX]; /* y */
	struct facts lower, upper;   /* of the present epoch */
	size_t n_knots, knots_allocated;
	struct knot *knots;
	size_t n_epochs;
	uint64_t epochs_forgotten;
	struct epoch *epochs;
};

/* The map lies in [base + lo, base + hi]. */
struct range {
	uint64_t base;
	double lo, hi;
};

static inline double difference(uint64_t a, uint64_t b)
{
	return (double)(int64_t)(a - b);
}

/* How far the map may bend away from its tangent at distance d. */
static inline double bend(const struct band *b, double d)
{
	d = fabs(d);
	return smaller(b->options.wander * d * d / 2,
		       (b->options.slope_max - b->options.slope_min) * d);
}

/* How far it may bend away from a chord of width w. */
static inline double chord_bend(const struct band *b, double w)
{
	return smaller(b->options.wander * w * w / 8,
		       (b->options.slope_max - b->options.slope_min) * w / 4);
}

static inline size_t epoch_end(const struct band *b, size_t e)
{
	return e + 1 < b->n_epochs ? b->epochs[e + 1].first : b->n_knots;
}

/* The map at x within the present epoch; x is not before it. *knot: the knot at or before x. */
struct range band_range_now(const struct band *b, uint64_t x, size_t *knot);

#endif
