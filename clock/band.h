/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A band bounds the unknown map y(x) from one clock to another. Its inputs are facts "y(x) >= v"
 * and "y(x) <= v". It assumes that both clocks run steadily: the slope y' lies between two limits
 * and changes by at most `wander` per tick of x. Then the true map lies inside the band everywhere.
 * A conversion returns the middle of the band and half its width.
 *
 * If no such map satisfies a new fact, one clock was stopped or stepped, and a new clock epoch
 * begins. Between the last fact that certainly belongs to one epoch and the first of the next, the
 * result covers the maps of both.
 *
 * Memory is bounded: of two adjacent old facts only the tighter one is kept. The band is stored at
 * knots; old knots are thinned, which widens the band there. A conversion is a binary search and
 * an interpolation; an observation costs some microseconds.
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
	bool short_memory;           /* 256 knots and 32 epochs, not 8192 and 1024 */
};

struct band_fact {
	uint64_t x, y;
};

struct band;

/* Returns NULL if out of memory. Copies the options. */
struct band *band_new(const struct band_options *options);
void band_free(struct band *b);

/*
 * Adds the facts y(lower.x) >= lower.y and y(upper.x) <= upper.y; the stamps are rounded down. Add
 * observations in order of y. Returns 0, 1 if the observation began a new epoch, -EINVAL if the
 * two facts contradict each other (they are ignored) or -ENOMEM.
 */
int band_observe(struct band *b, struct band_fact lower, struct band_fact upper);
/* Adds the fact y(fact.x) <= fact.y. Returns 0, -EINVAL if no map of the current epoch satisfies it
 * (it is ignored) or -ENOENT before the first observation. */
int band_upper(struct band *b, struct band_fact fact);
/* Makes the next observation begin a new epoch, even if it fits the current one: the clock of x had
 * stopped by `y`, or did not run again before `y`. If exactly one stop and one restart (in this
 * order) lie between two observations, conversions know on which side of the pause each x lies. */
void band_break_at(struct band *b, uint64_t y);

/* Convert x to y and y to x. *err: bound, in ticks of the result's clock. Return false before the
 * first observation or in a dropped epoch. */
bool band_y(const struct band *b, uint64_t x, uint64_t *y, uint64_t *err);
bool band_x(const struct band *b, uint64_t y, uint64_t *x, uint64_t *err);

struct band_summary {
	size_t epochs;     /* since band_new() */
	uint64_t newest_x; /* newest x with an observation */
	uint64_t err;      /* half the width of the band there */
	double slope_min, slope_max;
};
/* A stored epoch: the range of x that its knots cover. */
struct band_epoch {
	uint64_t first_x, last_x;
	uint64_t first_y, last_y;    /* middle of the band at first_x and last_x */
	double slope_min, slope_max; /* possible slopes at first_x and last_x */
};
/* Copies the i-th stored epoch, oldest first. Returns false past the last. */
bool band_epoch_get(const struct band *b, size_t i, struct band_epoch *out);

/* Describes the current epoch. All zeros before the first observation. */
void band_summarise(const struct band *b, struct band_summary *out);

#endif
