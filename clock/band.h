/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A band: all that is known of the map y(x) from one clock to another, when nothing is known but
 * facts "y(x) >= v" and "y(x) <= v" and that both clocks run steadily: y' lies between two slopes
 * and changes by at most `wander` per tick of x. The true map lies inside the band everywhere;
 * each conversion returns the middle of the band and half its width.
 *
 * A fact that fits no such map starts a new epoch (a clock was stopped or stepped). Between the
 * last sure fact of one epoch and the first of the next, the answer covers both maps.
 *
 * Memory is bounded for good: of the facts, old ones are thinned to the tighter of two neighbours;
 * the band itself is kept at knots, thinned with age, and its width grows by what thinning costs.
 * A conversion is a binary search and an interpolation; an observation costs some microseconds.
 */
#ifndef CLOCK_BAND_H
#define CLOCK_BAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct band_options {
	double slope_min, slope_max; /* y ticks per x tick */
	double wander;               /* change of slope per tick of x */
	uint64_t spacing;            /* ticks of x between knots */
};

struct band_fact {
	uint64_t x, y;
};

struct band;

/* NULL on ENOMEM. */
struct band *band_new(const struct band_options *options);
void band_free(struct band *b);

/*
 * y(lower.x) >= lower.y and y(upper.x) <= upper.y, both stamps rounded down. Observations come in
 * order of y. 0, 1 if it began a new epoch, -EINVAL if the two contradict each other (ignored),
 * -ENOMEM.
 */
int band_observe(struct band *b, struct band_fact lower, struct band_fact upper);
/* One fact alone. 0, -EINVAL if it fits no map of the present epoch (ignored), -ENOENT before the
 * first observation. */
int band_lower(struct band *b, struct band_fact fact);
int band_upper(struct band *b, struct band_fact fact);
/* The next observation begins a new epoch, whether or not it would fit. */
void band_break(struct band *b);
/* The same, where the clock of x stopped at `y` at the latest, or went on at `y` at the earliest.
 * One stop and one going on between two observations tell on which side of the pause any x lies. */
void band_break_at(struct band *b, uint64_t y);

/* y at x, and x at y; false before the first observation or in a forgotten epoch. */
bool band_y(const struct band *b, uint64_t x, uint64_t *y, uint64_t *err);
bool band_x(const struct band *b, uint64_t y, uint64_t *x, uint64_t *err);

struct band_summary {
	size_t epochs;     /* since the beginning */
	uint64_t newest_x; /* the newest place confirmed by an observation */
	uint64_t err;      /* half the width there */
	double slope_min, slope_max;
};
/* One epoch that is still known: the span of x that its knots cover. */
struct band_epoch {
	uint64_t first_x, last_x;
	uint64_t first_y, last_y;    /* the middle of the band there */
	double slope_min, slope_max; /* at its ends */
};
/* The i-th that is kept, oldest first; false beyond the last. */
bool band_epoch_get(const struct band *b, size_t i, struct band_epoch *out);

/* Zero before the first observation. */
void band_summarise(const struct band *b, struct band_summary *out);

#endif
