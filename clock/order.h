/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bounds the map y(x) between two clocks by the order of observations alone. Both clocks only run
 * forwards, so y between two observations lies between their values. This holds for any clock,
 * even one that runs at a varying rate or stops (a guest that counts instructions). The bound is
 * as wide as the time between observations.
 *
 * It also detects unsteady clocks. The clock is unsteady around x if most observations there
 * contradict every steady map through the earlier ones, so that each of them began an epoch of a
 * band (band.h).
 *
 * Memory is bounded: when it is full, every second observation of the older half is dropped. A
 * conversion is a binary search.
 */
#ifndef CLOCK_ORDER_H
#define CLOCK_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct order;

/* Returns NULL if out of memory. short_memory: keeps 512 observations instead of 16384. */
struct order *order_new(bool short_memory);
void order_free(struct order *o);

/* Adds the facts y(low_x) >= low_y and y(high_x) <= high_y, with low_x <= high_x and low_y <=
 * high_y. `fits`: a steady map satisfies them. Add observations in order of high_y. If the clock
 * of x was set back, all earlier observations are dropped. Returns 0 or -ENOMEM. */
int order_observe(struct order *o, uint64_t low_x, uint64_t low_y, uint64_t high_x, uint64_t high_y,
		  bool fits);
/* Adds the fact y(x) <= y, from the arrival of a message. Only the newest is kept. */
void order_not_after(struct order *o, uint64_t x, uint64_t y);

/* Returns true if the clock is unsteady around x. */
bool order_unsteady(const struct order *o, uint64_t x);
/* Returns true if the clock was ever unsteady. */
bool order_ever_unsteady(const struct order *o);
/* Converts x. *err: bound, UINT64_MAX if one side has no observation. Returns false before the
 * first observation. */
bool order_y(const struct order *o, uint64_t x, uint64_t *y, uint64_t *err);
/* Bounds the mean slope, in y ticks per x tick, over all observations. Returns false before the
 * second. */
bool order_slope(const struct order *o, double *min, double *max);

#endif
