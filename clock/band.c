/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * At a knot x the map is a tangent line plus a bend of at most wander*d^2/2 at distance d (and
 * never more than the slopes allow), so every fact, relaxed by that bend, is a point the tangent
 * passes above or below: feasible.c gives the range of its value and slope. Between knots w apart
 * the map bends away from the chord by at most wander*w^2/8, so interpolating both edges and adding
 * that holds it.
 *
 * A knot is computed when an observation arrives, and again when later facts can improve it: at
 * 1, 4, 16 and 64 knots of age, and at the end of its epoch.
 */
#include "clock/band.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock/feasible.h"

enum {
	FACTS_MAX = FEASIBLE_POINTS_MAX,
	FACTS_FRESH = 32, /* the newest facts are never thinned */
	KNOTS_MAX = 8192,
	EPOCHS_MAX = 1024,
	IMPROVE_KNOTS = 64,
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
};

struct band {
	struct band_options options;
	double rounding; /* stamps are rounded down: what one tick of x is worth, and one of y */
	bool broken;
	struct facts lower, upper; /* of the present epoch */
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

struct band *band_new(const struct band_options *options)
{
	struct band *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->options = *options;
	b->rounding = options->slope_max + 1;
	b->epochs = calloc(EPOCHS_MAX, sizeof(*b->epochs));
	if (!b->epochs) {
		free(b);
		return NULL;
	}
	return b;
}

void band_free(struct band *b)
{
	if (!b)
		return;
	free(b->knots);
	free(b->epochs);
	free(b);
}

static double difference(uint64_t a, uint64_t b)
{
	return (double)(int64_t)(a - b);
}

/* How far the map may bend away from its tangent at distance d. */
static double bend(const struct band *b, double d)
{
	d = fabs(d);
	return fmin(b->options.wander * d * d / 2,
		    (b->options.slope_max - b->options.slope_min) * d);
}

/* How far it may bend away from a chord of width w. */
static double chord_bend(const struct band *b, double w)
{
	return fmin(b->options.wander * w * w / 8,
		    (b->options.slope_max - b->options.slope_min) * w / 4);
}

static void points_set(const struct band *b, struct feasible_points *p, const struct facts *facts,
		       uint64_t x, uint64_t y, double direction)
{
	p->n = facts->n;
	for (size_t i = 0; i < facts->n; i++) {
		p->d[i] = difference(facts->at[i].x, x);
		p->v[i] = difference(facts->at[i].y, y) +
			  direction * (bend(b, p->d[i]) + b->rounding);
	}
}

/* The knot at x from all facts of the present epoch; y: any value near the map's. */
static bool knot_solve(const struct band *b, uint64_t x, uint64_t y, struct knot *knot,
		       struct slopes *slopes)
{
	struct feasible_set set;
	struct feasible_lines lines;

	set.slope_min = b->options.slope_min;
	set.slope_max = b->options.slope_max;
	points_set(b, &set.above, &b->upper, x, y, 1);
	points_set(b, &set.below, &b->lower, x, y, -1);
	if (!feasible_solve(&set, &lines))
		return false;
	*knot = (struct knot){x, y, lines.lo, lines.hi};
	*slopes = (struct slopes){lines.slope_min, lines.slope_max};
	return true;
}

/* ---- facts ---- */

/* Old facts give way: of two neighbours the tighter one stays, the newer one on a tie. */
static void facts_thin(struct facts *f, double slope, double direction)
{
	size_t kept = 0, old = f->n - FACTS_FRESH;

	for (size_t i = 0; i + 1 < old; i += 2) {
		const struct band_fact *a = &f->at[i], *c = &f->at[i + 1];
		double rise = difference(c->y, a->y) - slope * difference(c->x, a->x);

		f->at[kept++] = rise * direction > 0 ? *a : *c;
	}
	if (old % 2)
		f->at[kept++] = f->at[old - 1];
	memmove(&f->at[kept], &f->at[old], FACTS_FRESH * sizeof(f->at[0]));
	f->n = kept + FACTS_FRESH;
}

static void facts_add(const struct band *b, struct facts *f, struct band_fact fact,
		      double direction)
{
	if (f->n == FACTS_MAX) {
		const struct slopes *s = &b->epochs[b->n_epochs - 1].after;

		facts_thin(f, (s->min + s->max) / 2, direction);
	}
	f->at[f->n++] = fact;
}

static void facts_drop_after(struct facts *f, uint64_t x)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n; i++) {
		if (f->at[i].x <= x)
			f->at[kept++] = f->at[i];
	}
	f->n = kept;
}

/* ---- knots ---- */

static size_t epoch_end(const struct band *b, size_t e)
{
	return e + 1 < b->n_epochs ? b->epochs[e + 1].first : b->n_knots;
}

/* Every second knot of the older half goes, except the ends of epochs. */
static void knots_thin(struct band *b)
{
	size_t kept = 0, half = b->n_knots / 2;

	for (size_t e = 0; e < b->n_epochs; e++) {
		size_t first = b->epochs[e].first, end = epoch_end(b, e);

		b->epochs[e].first = kept;
		for (size_t k = first; k < end; k++) {
			bool inner = k > first && k + 1 < end;

			if (!(inner && k < half && (k - first) % 2))
				b->knots[kept++] = b->knots[k];
		}
	}
	b->n_knots = kept;
}

static int knot_append(struct band *b, const struct knot *knot)
{
	if (b->n_knots == KNOTS_MAX)
		knots_thin(b);
	if (b->n_knots == b->knots_allocated) {
		size_t wanted = b->knots_allocated ? b->knots_allocated * 2 : 64;
		struct knot *knots = realloc(b->knots, wanted * sizeof(*knots));

		if (!knots)
			return -ENOMEM;
		b->knots = knots;
		b->knots_allocated = wanted;
	}
	b->knots[b->n_knots++] = *knot;
	return 0;
}

static void epoch_forget(struct band *b)
{
	size_t gone = epoch_end(b, 0);

	memmove(b->knots, b->knots + gone, (b->n_knots - gone) * sizeof(*b->knots));
	b->n_knots -= gone;
	memmove(b->epochs, b->epochs + 1, (b->n_epochs - 1) * sizeof(*b->epochs));
	b->n_epochs--;
	b->epochs_forgotten++;
	for (size_t e = 0; e < b->n_epochs; e++)
		b->epochs[e].first -= gone;
}

/* The map rises by slope_min at least: what one knot knows limits its neighbour. */
static void knots_tighten(const struct band *b, struct knot *left, struct knot *right)
{
	double w = difference(right->x, left->x);
	double base = difference(right->y, left->y);
	double rise_min = b->options.slope_min * w - base;
	double rise_max = b->options.slope_max * w - base;
	struct knot l = *left, r = *right;

	l.hi = fmin(l.hi, r.hi - rise_min + 1);
	l.lo = fmax(l.lo, r.lo - rise_max - 1);
	r.hi = fmin(r.hi, left->hi + rise_max + 1);
	r.lo = fmax(r.lo, left->lo + rise_min - 1);
	if (l.lo <= l.hi && r.lo <= r.hi) {
		*left = l;
		*right = r;
	}
}

/* Recomputes knot k of the present epoch from all facts. */
static void knot_improve(struct band *b, size_t k)
{
	struct epoch *e = &b->epochs[b->n_epochs - 1];
	struct slopes slopes;
	struct knot knot;

	if (!knot_solve(b, b->knots[k].x, b->knots[k].y, &knot, &slopes))
		return;
	b->knots[k] = knot;
	if (k > e->first)
		knots_tighten(b, &b->knots[k - 1], &b->knots[k]);
	if (k + 1 < b->n_knots)
		knots_tighten(b, &b->knots[k], &b->knots[k + 1]);
	if (k == e->first)
		e->before = slopes;
	if (k + 1 == b->n_knots)
		e->after = slopes;
}

static void knots_improve_all(struct band *b)
{
	size_t first = b->epochs[b->n_epochs - 1].first;

	for (size_t age = 0; age < IMPROVE_KNOTS && b->n_knots > first + age; age++)
		knot_improve(b, b->n_knots - 1 - age);
}

/* ---- conversions ---- */

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

/* The middle as an integer, and the distance to the farther edge. */
static void range_finish(const struct range *r, uint64_t *value, uint64_t *err)
{
	const double far = 4e18; /* below 2^62: beyond it nothing is known */
	double middle = fmin(fmax(r->lo + (r->hi - r->lo) / 2, -far), far);
	int64_t delta = (int64_t)floor(middle);
	double distance;

	if (delta < 0 && (uint64_t)-delta > r->base)
		delta = -(int64_t)r->base;
	else if (delta > 0 && r->base + (uint64_t)delta < r->base)
		delta = (int64_t)(UINT64_MAX - r->base);
	distance = ceil(fmax(r->hi - (double)delta, (double)delta - r->lo)) + 1;
	*value = r->base + (uint64_t)delta;
	*err = distance < far ? (uint64_t)distance : UINT64_MAX;
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
	struct range r = {from->y, fmax(fmin(a.lo, z.lo + shift), from->lo),
			  fmin(fmax(a.hi, z.hi + shift), to->hi + shift)};

	if (r.hi < r.lo)
		r.hi = r.lo = (r.hi + r.lo) / 2;
	return r;
}

/* The last knot of [first, end) at or before x; the first knot must be. */
static size_t knot_before(const struct band *b, size_t first, size_t end, uint64_t x)
{
	while (end - first > 1) {
		size_t middle = first + (end - first) / 2;

		if (b->knots[middle].x <= x)
			first = middle;
		else
			end = middle;
	}
	return first;
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

			v += outward * chord_bend(b, w);
			return (struct place){k->x, -v / (vz - v) * w};
		}
		s = &epoch->after;
		direction = 1;
	}
	/* Beyond the end: no farther than the slowest map would go. */
	v = fabs(v);
	limit = v / b->options.slope_min;
	if (upper_edge == (direction > 0))
		d = fmax(0, v - bend(b, limit)) / s->max;
	else
		d = fmin(limit, (v + bend(b, limit)) / s->min);
	return (struct place){k->x, direction * d};
}

static struct range range_x(const struct band *b, size_t e, uint64_t y)
{
	struct place lo = edge_x(b, e, y, true), hi = edge_x(b, e, y, false);

	return (struct range){lo.base, lo.offset, hi.offset + difference(hi.base, lo.base)};
}

bool band_x(const struct band *b, uint64_t y, uint64_t *x, uint64_t *err)
{
	const struct knot *k;
	struct range r;
	size_t e = b->n_epochs;

	if (!e)
		return false;
	while (e > 1) {
		k = &b->knots[b->epochs[e - 1].first];
		if (difference(y, k->y) >= k->lo)
			break;
		e--;
	}
	k = &b->knots[0];
	if (e == 1 && b->epochs_forgotten && difference(y, k->y) < k->lo)
		return false;
	r = range_x(b, e - 1, y);
	k = &b->knots[epoch_end(b, e - 1) - 1];
	if (e < b->n_epochs && difference(y, k->y) > k->lo) {
		struct range next = range_x(b, e, y);
		double shift = difference(next.base, r.base);

		r.lo = fmin(r.lo, next.lo + shift);
		r.hi = fmax(r.hi, next.hi + shift);
	}
	range_finish(&r, x, err);
	return true;
}

/* ---- observations ---- */

static int epoch_begin(struct band *b, struct band_fact lower, struct band_fact upper, uint64_t x)
{
	struct epoch epoch = {.first = b->n_knots};
	struct knot knot;
	int r;

	b->lower.n = b->upper.n = 0;
	b->lower.at[b->lower.n++] = lower;
	b->upper.at[b->upper.n++] = upper;
	if (!knot_solve(b, x, upper.y, &knot, &epoch.before))
		return -EINVAL;
	epoch.after = epoch.before;
	if (b->n_epochs == EPOCHS_MAX)
		epoch_forget(b);
	epoch.first = b->n_knots;
	r = knot_append(b, &knot);
	if (r)
		return r;
	/* Thinning may have moved the knots, and this one with them. */
	epoch.first = b->n_knots - 1;
	b->epochs[b->n_epochs++] = epoch;
	b->broken = false;
	return b->n_epochs + b->epochs_forgotten > 1;
}

/*
 * The new observation fits no map of the present epoch. What arrived shortly before may be of the
 * new epoch too, and only have been too slow to show it: the present one ends at its newest fact
 * that the new map contradicts, and what is later belongs to neither for sure.
 */
static void epoch_finish(struct band *b, struct band_fact lower, struct band_fact upper)
{
	struct epoch *e = &b->epochs[b->n_epochs - 1];
	double s_min = b->options.slope_min, s_max = b->options.slope_max;
	uint64_t sure = b->knots[e->first].x;
	uint64_t last_x = b->knots[b->n_knots - 1].x;
	bool found = false;
	struct knot knot;

	for (size_t i = 0; i < b->lower.n; i++) {
		double d = difference(b->lower.at[i].x, upper.x);
		double highest = (d < 0 ? s_min : s_max) * d + b->rounding * 2;

		if (difference(b->lower.at[i].y, upper.y) > highest) {
			found = true;
			if (b->lower.at[i].x > sure)
				sure = b->lower.at[i].x;
		}
	}
	for (size_t i = 0; i < b->upper.n; i++) {
		double d = difference(b->upper.at[i].x, lower.x);
		double lowest = (d < 0 ? s_max : s_min) * d - b->rounding * 2;

		if (difference(b->upper.at[i].y, lower.y) < lowest) {
			found = true;
			if (b->upper.at[i].x > sure)
				sure = b->upper.at[i].x;
		}
	}
	if (found && sure < last_x) {
		facts_drop_after(&b->lower, sure);
		facts_drop_after(&b->upper, sure);
		while (b->n_knots > e->first + 1 && b->knots[b->n_knots - 1].x >= sure)
			b->n_knots--;
		if (b->lower.n && b->upper.n && sure > b->knots[b->n_knots - 1].x &&
		    knot_solve(b, sure, upper.y, &knot, &e->after))
			knot_append(b, &knot); /* room was just made */
	}
	knots_improve_all(b);
}

/* The map rises by slope_min at least, and the two facts must leave room for that. */
static bool fits_alone(const struct band *b, struct band_fact lower, struct band_fact upper)
{
	double d = difference(upper.x, lower.x);
	double rise = (d < 0 ? b->options.slope_max : b->options.slope_min) * d;

	return difference(upper.y, lower.y) >= rise - b->rounding;
}

int band_observe(struct band *b, struct band_fact lower, struct band_fact upper)
{
	uint64_t x = lower.x > upper.x ? lower.x : upper.x;
	struct slopes slopes;
	struct epoch *e;
	struct knot knot;
	size_t last;
	int r;

	if (!fits_alone(b, lower, upper))
		return -EINVAL;
	if (!b->n_epochs)
		return epoch_begin(b, lower, upper, x);
	if (b->broken) {
		knots_improve_all(b);
		return epoch_begin(b, lower, upper, x);
	}
	facts_add(b, &b->lower, lower, -1);
	facts_add(b, &b->upper, upper, 1);
	if (!knot_solve(b, x, upper.y, &knot, &slopes)) {
		b->lower.n--;
		b->upper.n--;
		epoch_finish(b, lower, upper);
		return epoch_begin(b, lower, upper, x);
	}
	e = &b->epochs[b->n_epochs - 1];
	last = b->n_knots - 1;
	if (x <= b->knots[last].x)
		return 0;
	/* The newest knot moves along until it is far enough from the one before. */
	if (last > e->first && x - b->knots[last - 1].x < b->options.spacing) {
		b->knots[last] = knot;
		knots_tighten(b, &b->knots[last - 1], &b->knots[last]);
		e->after = slopes;
		return 0;
	}
	r = knot_append(b, &knot);
	if (r)
		return r;
	e->after = slopes;
	last = b->n_knots - 1;
	knots_tighten(b, &b->knots[last - 1], &b->knots[last]);
	for (size_t age = 1; age <= IMPROVE_KNOTS && last >= e->first + age; age *= 4)
		knot_improve(b, last - age);
	return 0;
}

static int fact_add(struct band *b, struct facts *facts, struct band_fact fact, double direction)
{
	struct slopes slopes;
	struct epoch *e;
	struct knot knot;
	struct range r;
	double distance;
	size_t k;

	if (!b->n_epochs)
		return -ENOENT;
	e = &b->epochs[b->n_epochs - 1];
	if (b->broken || fact.x < b->knots[e->first].x)
		return 0;
	knot = b->knots[b->n_knots - 1];
	k = knot_before(b, e->first, b->n_knots, fact.x);
	r = k + 1 < b->n_knots ? range_between(b, &b->knots[k], &b->knots[k + 1], fact.x)
			       : range_beyond(b, &knot, &e->after, fact.x);
	distance = difference(fact.y, r.base);
	if (direction > 0 ? distance >= r.hi : distance <= r.lo)
		return 0; /* known better already */
	facts_add(b, facts, fact, direction);
	if (!knot_solve(b, knot.x, knot.y, &knot, &slopes)) {
		facts->n--;
		return -EINVAL;
	}
	knot_improve(b, k);
	if (k + 1 < b->n_knots)
		knot_improve(b, b->n_knots - 1);
	return 0;
}

int band_lower(struct band *b, struct band_fact fact)
{
	return fact_add(b, &b->lower, fact, -1);
}

int band_upper(struct band *b, struct band_fact fact)
{
	return fact_add(b, &b->upper, fact, 1);
}

void band_break(struct band *b)
{
	b->broken = b->n_epochs > 0;
}

void band_summarise(const struct band *b, struct band_summary *out)
{
	const struct epoch *e;
	uint64_t y;

	memset(out, 0, sizeof(*out));
	if (!b->n_epochs)
		return;
	e = &b->epochs[b->n_epochs - 1];
	out->epochs = b->n_epochs + b->epochs_forgotten;
	out->newest_x = b->knots[b->n_knots - 1].x;
	out->slope_min = e->after.min;
	out->slope_max = e->after.max;
	band_y(b, out->newest_x, &y, &out->err);
}
