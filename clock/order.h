/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What order alone proves of the map y(x) between two clocks: both run forwards, so between two
 * observations y lies between what they say. True of any clock, however unsteady (a guest that
 * counts instructions runs at any rate, or not at all); as wide as the time between observations.
 *
 * It also tells whether the clock deserves more trust: where most observations around x contradict
 * every steady map through the ones before them (each began an epoch of a band), it does not.
 *
 * Memory is bounded: when full, every second observation goes. A conversion is a binary search.
 */
#ifndef CLOCK_ORDER_H
#define CLOCK_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct order;

struct order *order_new(void); /* NULL on ENOMEM */
void order_free(struct order *o);

/* y(low_x) >= low_y and y(high_x) <= high_y; low_x <= high_x, low_y <= high_y. `fits`: a steady map
 * went on. Observations come in order of high_y; of a clock that was set back, what was before is
 * forgotten. 0 or -ENOMEM. */
int order_observe(struct order *o, uint64_t low_x, uint64_t low_y, uint64_t high_x, uint64_t high_y,
		  bool fits);
/* y(x) <= y, from a message's arrival; the newest is kept. */
void order_not_after(struct order *o, uint64_t x, uint64_t y);

/* Is the clock known to be unsteady around x? */
bool order_unsteady(const struct order *o, uint64_t x);
/* Was it ever? */
bool order_ever_unsteady(const struct order *o);
/* y at x and the bound, UINT64_MAX if one side is open. false without an observation. */
bool order_y(const struct order *o, uint64_t x, uint64_t *y, uint64_t *err);
/* The mean slope, y ticks per x tick, over all that was observed. false before the second. */
bool order_slope(const struct order *o, double *min, double *max);

#endif
