/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * At distance d from a knot x, the map differs from its tangent at x by at most wander*d^2/2, and
 * never by more than the slope limits allow. Each fact, relaxed by this difference, is therefore a
 * point that the tangent passes above or below. feasible.c computes the range of the tangent's
 * value and slope. Between two knots at distance w, the map differs from the chord by at most
 * wander*w^2/8. The band between two knots is the interpolation of its edges, widened by this
 * value.
 *
 * A knot is computed when an observation arrives. It is computed again when later facts can
 * improve it: at an age of 1, 4, 16 and 64 knots, and at the end of its epoch.
 */
#include "clock/band_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct band *band_new(const struct band_options *options)
{
	struct band *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->options = *options;
	b->rounding = options->slope_max + 1;
	b->knots_max = options->short_memory ? KNOTS_SHORT_MAX : KNOTS_MAX;
	b->epochs_max = options->short_memory ? EPOCHS_SHORT_MAX : EPOCHS_MAX;
	b->epochs = calloc(b->epochs_max, sizeof(*b->epochs));
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

	if (!b->upper.n || !b->lower.n)
		return false;
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
	if (b->n_knots == b->knots_max)
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

	l.hi = smaller(l.hi, r.hi - rise_min + 1);
	l.lo = larger(l.lo, r.lo - rise_max - 1);
	r.hi = smaller(r.hi, left->hi + rise_max + 1);
	r.lo = larger(r.lo, left->lo + rise_min - 1);
	if (l.lo <= l.hi && r.lo <= r.hi) {
		*left = l;
		*right = r;
	}
}

/* Recomputes knot k of the present epoch from all facts. */
static void knot_renew(struct band *b, size_t k)
{
	struct epoch *e = &b->epochs[b->n_epochs - 1];
	struct slopes slopes;
	struct knot knot;

	if (!knot_solve(b, b->knots[k].x, b->knots[k].y, &knot, &slopes))
		return;
	b->knots[k] = knot;
	if (k == e->first)
		e->before = slopes;
	if (k + 1 == b->n_knots)
		e->after = slopes;
}

static void knot_improve(struct band *b, size_t k)
{
	knot_renew(b, k);
	if (k > b->epochs[b->n_epochs - 1].first)
		knots_tighten(b, &b->knots[k - 1], &b->knots[k]);
	if (k + 1 < b->n_knots)
		knots_tighten(b, &b->knots[k], &b->knots[k + 1]);
}

/*
 * All that the facts of late can have touched. Each is renewed before any limits its neighbour:
 * some may rest on facts that have been dropped.
 */
static void knots_renew_all(struct band *b)
{
	size_t first = b->epochs[b->n_epochs - 1].first;
	size_t from =
		b->n_knots > first + IMPROVE_KNOTS + 2 ? b->n_knots - IMPROVE_KNOTS - 2 : first;

	for (size_t k = from; k < b->n_knots; k++)
		knot_renew(b, k);
	for (size_t k = from; k + 1 < b->n_knots; k++)
		knots_tighten(b, &b->knots[k], &b->knots[k + 1]);
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
	if (b->n_epochs == b->epochs_max)
		epoch_forget(b);
	epoch.first = b->n_knots;
	r = knot_append(b, &knot);
	if (r)
		return r;
	/* Thinning may have moved the knots, and this one with them. */
	epoch.first = b->n_knots - 1;
	epoch.paused = b->n_breaks == BREAKS_MAX && b->breaks[0] <= b->breaks[1];
	epoch.stopped_y = b->breaks[0];
	epoch.resumed_y = b->breaks[1];
	b->epochs[b->n_epochs++] = epoch;
	b->broken = false;
	b->n_breaks = 0;
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
	knots_renew_all(b);
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
		knots_renew_all(b);
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

int band_upper(struct band *b, struct band_fact fact)
{
	struct slopes slopes;
	struct epoch *e;
	struct knot knot;
	struct range r;
	size_t k;

	if (!b->n_epochs)
		return -ENOENT;
	e = &b->epochs[b->n_epochs - 1];
	if (b->broken || fact.x < b->knots[e->first].x)
		return 0;
	knot = b->knots[b->n_knots - 1];
	r = band_range_now(b, fact.x, &k);
	if (difference(fact.y, r.base) >= r.hi)
		return 0; /* known better already */
	facts_add(b, &b->upper, fact, 1);
	if (!knot_solve(b, knot.x, knot.y, &knot, &slopes)) {
		b->upper.n--;
		return -EINVAL;
	}
	knot_improve(b, k);
	if (k + 1 < b->n_knots)
		knot_improve(b, b->n_knots - 1);
	return 0;
}

void band_break_at(struct band *b, uint64_t y)
{
	b->broken = b->n_epochs > 0;
	if (b->n_breaks < BREAKS_MAX)
		b->breaks[b->n_breaks] = y;
	if (b->n_breaks <= BREAKS_MAX)
		b->n_breaks++;
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

bool band_epoch_get(const struct band *b, size_t i, struct band_epoch *out)
{
	const struct knot *first, *last;
	const struct epoch *e = &b->epochs[i];

	if (i >= b->n_epochs)
		return false;
	first = &b->knots[b->epochs[i].first];
	last = &b->knots[epoch_end(b, i) - 1];
	*out = (struct band_epoch){
		.first_x = first->x,
		.last_x = last->x,
		.first_y = first->y + (uint64_t)(int64_t)((first->lo + first->hi) / 2),
		.last_y = last->y + (uint64_t)(int64_t)((last->lo + last->hi) / 2),
		.slope_min = smaller(e->before.min, e->after.min),
		.slope_max = larger(e->before.max, e->after.max),
	};
	return true;
}
