/* SPDX-License-Identifier: GPL-2.0-only */
/* Converts with the knots of a band: from x to the interval of y, and back. */
#include "clock/band_internal.h"

static struct range range_between(const struct band *b, const struct knot *left,
				  const struct knot *right, uint64_t x)
{
	double w = difference(right->x, left->x), f = difference(x, left->x) / w;
	double rise = difference(right->y, left->y), extra = chord_bend(b, w);

	return (struct range){left->y, left->lo + f * (rise + right->lo - left->lo) - extra,
			      left->hi + f * (rise + right->hi - left->hi) + extra};
}

static struct range range_beyond(const struct band *b, const struct knot *k, const struct slopes *s,
				 uint64_t x)
{
	double d = difference(x, k->x), extra = bend(b, d);

	return (struct range){k->y, k->lo + (d < 0 ? s->max : s->min) * d - extra,
			      k->hi + (d < 0 ? s->min : s->max) * d + extra};
}

/* `at` as an integer, and the distance to the farther edge. */
static void range_finish_at(const struct range *r, double at, uint64_t *value, uint64_t *err)
{
	const double far = 4e18; /* below 2^62: beyond it nothing is known */
	double middle = smaller(larger(at, -far), far);
	int64_t delta = (int64_t)middle;
	double distance;

	if (delta < 0 && (uint64_t)-delta > r->base)
		delta = -(int64_t)r->base;
	else if (delta > 0 && r->base + (uint64_t)delta < r->base)
		delta = (int64_t)(UINT64_MAX - r->base);
	/* Edges that a hostile clock made cross still hold everything between them. */
	distance = larger(fabs(r->hi - (double)delta), fabs((double)delta - r->lo));
	distance += 2; /* rounded up, and 1 */
	*value = r->base + (uint64_t)delta;
	*err = distance < far ? (uint64_t)distance : UINT64_MAX;
}

static double range_middle(const struct range *r)
{
	return r->lo + (r->hi - r->lo) / 2;
}

static void range_finish(const struct range *r, uint64_t *value, uint64_t *err)
{
	range_finish_at(r, range_middle(r), value, err);
}

/*
 * x lies after epoch e and before the next: both maps may hold, and time runs forwards, not before
 * the end of the one or after the beginning of the other.
 */
static struct range range_of_gap(const struct band *b, size_t e, uint64_t x)
{
	const struct knot *from = &b->knots[epoch_end(b, e) - 1], *to = from + 1;
	struct range a = range_beyond(b, from, &b->epochs[e].after, x);
	struct range z = range_beyond(b, to, &b->epochs[e + 1].before, x);
	double shift = difference(to->y, from->y);
	struct range r = {from->y, larger(smaller(a.lo, z.lo + shift), from->lo),
			  smaller(larger(a.hi, z.hi + shift), to->hi + shift)};

	if (r.hi < r.lo)
		r.hi = r.lo = (r.hi + r.lo) / 2;
	return r;
}

/*
 * The same where the clock of x stood still once in between: one map holds until it stopped, the
 * other from when it went on. Whoever says when (QEMU) does so a little after the one and before
 * the other: so near to the pause both may hold, and *at is the side that the sharper of them
 * speaks for.
 */
static struct range range_of_pause(const struct band *b, size_t e, uint64_t x, double *at)
{
	const struct knot *from = &b->knots[epoch_end(b, e) - 1], *to = from + 1;
	const struct epoch *next = &b->epochs[e + 1];
	struct range before = range_beyond(b, from, &b->epochs[e].after, x);
	struct range after = range_beyond(b, to, &next->before, x);
	double shift = difference(to->y, from->y);
	double stopped = difference(next->stopped_y, from->y);
	double resumed = difference(next->resumed_y, from->y);
	double slack = (double)b->options.spacing * b->options.slope_max / PAUSE_SLACK;
	bool is_before, is_after, earlier;

	after = (struct range){from->y, after.lo + shift, after.hi + shift};
	if (before.lo > stopped && after.hi < resumed) {
		before = range_of_gap(b, e, x); /* neither: it was not that pause alone */
		*at = range_middle(&before);
		return before;
	}
	is_before = before.hi <= stopped - slack || after.hi < resumed;
	is_after = after.lo >= resumed + slack || before.lo > stopped;
	earlier = before.hi - before.lo <= after.hi - after.lo ? range_middle(&before) <= stopped
							       : range_middle(&after) < resumed;
	before.hi = smaller(before.hi, larger(stopped, before.lo));
	after.lo = larger(after.lo, smaller(resumed, after.hi));
	*at = range_middle(is_before || (earlier && !is_after) ? &before : &after);
	return (struct range){from->y, is_after && !is_before ? after.lo : before.lo,
			      is_before ? before.hi : after.hi};
}

/* The last knot of [first, end) at or before x; the first knot must be. */
static size_t knot_before(const struct band *b, size_t first, size_t end, uint64_t x)
{
	const struct knot *at = &b->knots[first];
	size_t n = end - first;

	/* Live conversion asks for the last piece; else no branch could be predicted. */
	if (n > 2 && b->knots[end - 2].x <= x)
		return b->knots[end - 1].x <= x ? end - 1 : end - 2;
	while (n > 1) {
		size_t half = n / 2;

		at = at[half].x <= x ? at + half : at;
		n -= half;
	}
	return (size_t)(at - b->knots);
}

struct range band_range_now(const struct band *b, uint64_t x, size_t *knot)
{
	const struct epoch *e = &b->epochs[b->n_epochs - 1];
	size_t k = knot_before(b, e->first, b->n_knots, x);

	*knot = k;
	return k + 1 < b->n_knots ? range_between(b, &b->knots[k], &b->knots[k + 1], x)
				  : range_beyond(b, &b->knots[k], &e->after, x);
}

/*
 * The epoch that x falls into, the newest of several. Else, if x lies between two epochs or beyond
 * all, the epoch whose nearer end is nearest.
 */
static size_t epoch_at(const struct band *b, uint64_t x)
{
	uint64_t nearest = UINT64_MAX;
	size_t found = b->n_epochs - 1;

	for (size_t e = b->n_epochs; e-- > 0;) {
		uint64_t first = b->knots[b->epochs[e].first].x;
		uint64_t last = b->knots[epoch_end(b, e) - 1].x;
		uint64_t distance = x < first ? first - x : x - last;

		if (x >= first && x <= last)
			return e;
		/* What the present epoch has just stamped and no observation has confirmed yet. */
		if (x > last && e + 1 == b->n_epochs &&
		    distance <= IMPROVE_KNOTS * b->options.spacing)
			return e;
		if (distance < nearest) {
			nearest = distance;
			found = e;
		}
	}
	return found;
}

bool band_y(const struct band *b, uint64_t x, uint64_t *y, uint64_t *err)
{
	const struct knot *first, *last;
	size_t e, end, other;
	struct range r;

	if (!b->n_epochs)
		return false;
	e = epoch_at(b, x);
	end = epoch_end(b, e);
	first = &b->knots[b->epochs[e].first];
	last = &b->knots[end - 1];
	other = e;
	if (x < first->x) {
		if (!e && b->epochs_forgotten)
			return false;
		r = range_beyond(b, first, &b->epochs[e].before, x);
		other = e - (e && b->knots[b->epochs[e].first - 1].x < x);
	} else if (x < last->x) {
		size_t k = knot_before(b, b->epochs[e].first, end, x);

		r = range_between(b, &b->knots[k], &b->knots[k + 1], x);
	} else {
		r = range_beyond(b, last, &b->epochs[e].after, x);
		other = e + (x > last->x && end < b->n_knots && b->knots[end].x > x);
	}
	if (other != e && b->epochs[e < other ? other : e].paused) {
		double at;

		r = range_of_pause(b, e < other ? e : other, x, &at);
		range_finish_at(&r, at, y, err);
		return true;
	}
	if (other != e)
		r = range_of_gap(b, e < other ? e : other, x);
	range_finish(&r, y, err);
	return true;
}

/* A place on the x axis. */
struct place {
	uint64_t base;
	double offset;
};

/*
 * Where an edge of the band passes y. upper_edge: the first x at which the map may have reached y,
 * else the last at which it may still be there.
 */
static struct place edge_x(const struct band *b, size_t e, uint64_t y, bool upper_edge)
{
	const struct epoch *epoch = &b->epochs[e];
	size_t left = epoch->first, end = epoch_end(b, e), right = end;
	const struct knot *k = &b->knots[left];
	double v = difference(k->y, y) + (upper_edge ? k->hi : k->lo);
	double d, limit, outward = upper_edge ? 1 : -1;
	const struct slopes *s = &epoch->before;
	double direction = -1;

	if (v < 0) {
		while (right - left > 1) {
			size_t middle = left + (right - left) / 2;

			k = &b->knots[middle];
			if (difference(k->y, y) + (upper_edge ? k->hi : k->lo) < 0)
				left = middle;
			else
				right = middle;
		}
		k = &b->knots[left];
		v = difference(k->y, y) + (upper_edge ? k->hi : k->lo);
		if (right < end) {
			const struct knot *z = &b->knots[right];
			double vz = difference(z->y, y) + (upper_edge ? z->hi : z->lo);
			double w = difference(z->x, k->x);
			double bent = v + outward * chord_bend(b, w);

			return (struct place){k->x, -bent / (vz - v) * w};
		}
		s = &epoch->after;
		direction = 1;
	}
	/* Beyond the end: no farther than the slowest map would go. */
	v = fabs(v);
	limit = v / b->options.slope_min;
	if (upper_edge == (direction > 0))
		d = larger(0, v - bend(b, limit)) / s->max;
	else
		d = smaller(limit, (v + bend(b, limit)) / s->min);
	return (struct place){k->x, direction * d};
}

static struct range range_x(const struct band *b, size_t e, uint64_t y)
{
	struct place lo = edge_x(b, e, y, true), hi = edge_x(b, e, y, false);

	return (struct range){lo.base, lo.offset, hi.offset + difference(hi.base, lo.base)};
}

/* Whether the map's lower (edge -1) or upper (1) edge at a knot is at or below y. */
static bool y_reaches(const struct knot *k, uint64_t y, int edge)
{
	return difference(y, k->y) >= (edge < 0 ? k->lo : k->hi);
}

bool band_x(const struct band *b, uint64_t y, uint64_t *x, uint64_t *err)
{
	size_t newest, oldest;
	struct range r;

	if (!b->n_epochs)
		return false;
	/* y never goes back: the epochs that may hold at y are neighbours, and mostly one. */
	newest = b->n_epochs - 1;
	while (newest && !y_reaches(&b->knots[b->epochs[newest].first], y, -1))
		newest--;
	if (!newest && b->epochs_forgotten && !y_reaches(&b->knots[0], y, -1))
		return false;
	oldest = newest;
	while (oldest && !y_reaches(&b->knots[b->epochs[oldest].first], y, 1))
		oldest--;
	r = range_x(b, oldest, y);
	if (oldest == newest && newest + 1 < b->n_epochs &&
	    y_reaches(&b->knots[epoch_end(b, newest) - 1], y, -1))
		newest++;
	for (size_t e = oldest + 1; e <= newest; e++) {
		struct range next = range_x(b, e, y);
		double shift = difference(next.base, r.base);

		r.lo = smaller(r.lo, next.lo + shift);
		r.hi = larger(r.hi, next.hi + shift);
	}
	range_finish(&r, x, err);
	return true;
}
