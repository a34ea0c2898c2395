/* SPDX-License-Identifier: GPL-2.0-only */
#include "clock/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	POINTS_MAX = 16384,
	POINTS_SHORT_MAX = 512, /* with a short memory */
	POINTS_FIRST = 256,
	/* Observations around a place that are asked whether a steady map fits, and how many must
	 * say no. Steps that follow each other this fast are no steps. */
	JURY = 16,
	JURY_UNSTEADY = 6,
};

struct point {
	uint64_t low_x, low_y, high_x, high_y;
	uint64_t misfits; /* of all observations until here */
};

struct order {
	size_t n, allocated, max;
	struct point *points; /* low_x, low_y, high_x and high_y rise */
	uint64_t misfits;
	bool unsteady;
	uint64_t arrival_x, arrival_y; /* 0: none */
};

struct order *order_new(bool short_memory)
{
	struct order *o = calloc(1, sizeof(*o));

	if (o)
		o->max = short_memory ? POINTS_SHORT_MAX : POINTS_MAX;
	return o;
}

void order_free(struct order *o)
{
	if (!o)
		return;
	free(o->points);
	free(o);
}

/* Every second point of the older half goes. */
static void points_thin(struct order *o)
{
	const size_t half = o->n / 2, kept = half / 2;

	for (size_t i = 0; i < kept; i++)
		o->points[i] = o->points[2 * i];
	memmove(o->points + kept, o->points + half, (o->n - half) * sizeof(*o->points));
	o->n -= half - kept;
}

static int room_make(struct order *o)
{
	size_t wanted = o->allocated ? o->allocated * 2 : POINTS_FIRST;
	struct point *grown;

	if (o->n < o->allocated)
		return 0;
	if (o->n == o->max) {
		points_thin(o);
		return 0;
	}
	grown = realloc(o->points, wanted * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	o->points = grown;
	o->allocated = wanted;
	return 0;
}

/* Do most of points[from..to] contradict a steady clock? */
static bool jury_says(const struct order *o, size_t from, size_t to)
{
	return to > from && o->points[to].misfits - o->points[from].misfits >= JURY_UNSTEADY;
}

int order_observe(struct order *o, uint64_t low_x, uint64_t low_y, uint64_t high_x, uint64_t high_y,
		  bool fits)
{
	const struct point *last = o->n ? &o->points[o->n - 1] : NULL;
	int err;

	if (last && (low_x < last->high_x || high_x < last->high_x || high_y < last->high_y)) {
		/* Replies may overtake in theory; a clock that was set back begins anew. */
		if (low_x < last->low_x) {
			o->n = 0;
			o->arrival_x = o->arrival_y = 0;
		} else {
			return 0;
		}
	}
	err = room_make(o);
	if (err)
		return err;
	o->misfits += !fits;
	o->points[o->n++] = (struct point){low_x, low_y, high_x, high_y, o->misfits};
	if (jury_says(o, o->n > JURY ? o->n - 1 - JURY : 0, o->n - 1))
		o->unsteady = true;
	return 0;
}

void order_not_after(struct order *o, uint64_t x, uint64_t y)
{
	if (x < o->arrival_x)
		return;
	o->arrival_x = x;
	o->arrival_y = y;
}

/* Returns the number of points that begin at or before x. */
static size_t points_until(const struct order *o, uint64_t x)
{
	size_t low = 0, high = o->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (o->points[middle].low_x <= x)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool order_unsteady(const struct order *o, uint64_t x)
{
	size_t at, from, to;

	if (!o->unsteady || !o->n)
		return false;
	at = points_until(o, x);
	from = at > JURY / 2 ? at - JURY / 2 : 0;
	to = from + JURY < o->n ? from + JURY : o->n - 1;
	if (to - from < JURY)
		from = to > JURY ? to - JURY : 0;
	return jury_says(o, from, to);
}

bool order_ever_unsteady(const struct order *o)
{
	return o->unsteady;
}

static uint64_t middle_of(uint64_t a, uint64_t b)
{
	return a + (b - a) / 2;
}

/* Within [low, high], on the chord between the middles of two points, so that events between two
 * observations do not collapse into one instant. */
static uint64_t chord_at(const struct point *p, const struct point *q, uint64_t x, uint64_t low,
			 uint64_t high)
{
	uint64_t x0 = middle_of(p->low_x, p->high_x), x1 = middle_of(q->low_x, q->high_x);
	uint64_t y0 = middle_of(p->low_y, p->high_y), y1 = middle_of(q->low_y, q->high_y);
	double rise;

	if (x <= x0 || x1 <= x0)
		return y0 > low ? y0 : low;
	if (x >= x1)
		return y1 < high ? y1 : high;
	rise = (double)(x - x0) / (double)(x1 - x0) * (double)(y1 - y0);
	y0 += (uint64_t)rise;
	if (y0 < low)
		return low;
	return y0 < high ? y0 : high;
}

bool order_y(const struct order *o, uint64_t x, uint64_t *y, uint64_t *err)
{
	const struct point *before = NULL, *after = NULL;
	size_t until = points_until(o, x), next = until;
	uint64_t low, high;

	if (!o->n)
		return false;
	if (until)
		before = &o->points[until - 1];
	/* The first that ends at or after x: the one before, if x lies within it. */
	if (before && before->high_x >= x)
		next = until - 1;
	if (next < o->n)
		after = &o->points[next];
	*err = UINT64_MAX;
	low = before ? before->low_y : 0;
	if (after) {
		high = after->high_y;
	} else if (o->arrival_x >= x && o->arrival_y >= low) {
		high = o->arrival_y;
	} else {
		*y = before->high_y > low ? before->high_y : low;
		return true;
	}
	if (!before) {
		*y = after->low_y;
		return true;
	}
	if (after && after != before)
		*y = chord_at(before, after, x, low, high);
	else
		*y = middle_of(low, high);
	*err = (high - *y > *y - low ? high - *y : *y - low) + 1;
	return true;
}

bool order_slope(const struct order *o, double *min, double *max)
{
	const struct point *p = o->points, *q = p + o->n - 1;

	if (o->n < 2 || q->low_x <= p->high_x || q->low_y <= p->high_y)
		return false;
	*min = (double)(q->low_y - p->high_y) / (double)(q->high_x - p->low_x);
	*max = (double)(q->high_y - p->low_y) / (double)(q->low_x - p->high_x);
	return true;
}
