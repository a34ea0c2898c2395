/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/printk_clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { POINTS_MAX = 1024 }; /* when full, every second one goes */

void printk_clock_clear(struct printk_clock *c)
{
	free(c->points);
	*c = (struct printk_clock){0};
}

int printk_clock_add(struct printk_clock *c, const struct message_dmesg_point *point)
{
	if (!c->points) {
		c->points = malloc(POINTS_MAX * sizeof(*c->points));
		if (!c->points)
			return -ENOMEM;
	}
	if (c->n_points == POINTS_MAX) {
		for (size_t i = 0; i < POINTS_MAX / 2; i++)
			c->points[i] = c->points[2 * i];
		c->n_points = POINTS_MAX / 2;
	}
	c->points[c->n_points++] = *point;
	return 0;
}

/* ns of the printk clock per tick of the stream clock, +- err. */
struct printk_rate {
	double rate, err;
};

static int chord_compare(const void *a, const void *b)
{
	double x = ((const struct printk_rate *)a)->rate, y = ((const struct printk_rate *)b)->rate;

	return (x > y) - (x < y);
}

/* The median of the chords between neighbouring points: steps, being few, do not reach it. */
static struct printk_rate printk_rate(const struct printk_clock *c, uint64_t hz)
{
	static const double guest_rate_err = 2000e-6; /* a guest's own idea of its TSC */
	struct printk_rate chords[POINTS_MAX];
	size_t n = 0;

	for (size_t i = 1; i < c->n_points; i++) {
		const struct message_dmesg_point *p = &c->points[i - 1], *q = &c->points[i];
		double ticks = (double)(int64_t)(q->time - p->time);

		if (ticks <= 0 || q->ns <= p->ns)
			continue;
		chords[n].rate = (double)(q->ns - p->ns) / ticks;
		chords[n].err = (double)(p->err + q->err) / ticks * chords[n].rate;
		n++;
	}
	if (!n)
		return (struct printk_rate){1e9 / (double)hz, 1e9 / (double)hz * guest_rate_err};
	qsort(chords, n, sizeof(chords[0]), chord_compare);
	return chords[n / 2];
}

struct printk_pauses {
	const struct printk_pause *all;
	size_t n;
};

/* Ticks from `from` to `to` (negative if that is before it), pauses left out. */
static double ticks_awake(const struct printk_pauses *p, uint64_t from, uint64_t to)
{
	uint64_t lo = from < to ? from : to, hi = from < to ? to : from;
	double ticks = (double)(hi - lo);

	for (size_t i = 0; i < p->n; i++) {
		uint64_t begin = p->all[i].from > lo ? p->all[i].from : lo;
		uint64_t end = p->all[i].until < hi ? p->all[i].until : hi;

		if (end > begin)
			ticks -= (double)(end - begin);
	}
	return from < to ? ticks : -ticks;
}

/* Does this clock stand still in a pause? The first two points around one say so; without such, it
 * does. */
static bool stops_in_pauses(const struct printk_clock *c, const struct printk_pauses *p,
			    const struct printk_rate *rate)
{
	static const struct printk_pauses none = {NULL, 0};

	for (size_t i = 1; i < c->n_points; i++) {
		const struct message_dmesg_point *a = &c->points[i - 1], *b = &c->points[i];
		double awake = ticks_awake(p, a->time, b->time),
		       all = ticks_awake(&none, a->time, b->time);
		double shown = (double)(int64_t)(b->ns - a->ns) / rate->rate;

		if (all > awake)
			return fabs(shown - awake) < fabs(shown - all);
	}
	return true;
}

struct printk_range {
	bool known;
	double lo, hi;
};

/* Widens the range by what point `p`, if any, says of stream time `at`. */
static void printk_range_add(struct printk_range *range, const struct message_dmesg_point *p,
			     const struct printk_pauses *pauses, uint64_t at,
			     const struct printk_rate *rate)
{
	double distance, middle, err;

	if (!p)
		return;
	distance = ticks_awake(pauses, p->time, at);
	middle = (double)p->ns + distance * rate->rate;
	err = fabs(distance) * rate->err + (double)p->err * rate->rate + 1;
	range->lo = range->known ? fmin(range->lo, middle - err) : middle - err;
	range->hi = range->known ? fmax(range->hi, middle + err) : middle + err;
	range->known = true;
}

bool printk_clock_at(const struct printk_clock *c, const struct printk_pause *pauses,
		     size_t n_pauses, uint64_t hz, uint64_t at, uint64_t *dmesg_ns,
		     uint64_t *err_ns)
{
	const struct message_dmesg_point *before = NULL, *after = NULL;
	struct printk_pauses stops = {pauses, n_pauses};
	struct printk_range range = {0};
	struct printk_rate rate;

	if (!c->n_points || !hz)
		return false;
	for (size_t i = 0; i < c->n_points; i++) {
		const struct message_dmesg_point *p = &c->points[i];

		if (p->time <= at && (!before || p->time >= before->time))
			before = p;
		if (p->time > at && (!after || p->time < after->time))
			after = p;
	}
	rate = printk_rate(c, hz);
	if (stops.n && !stops_in_pauses(c, &stops, &rate))
		stops.n = 0;
	printk_range_add(&range, before, &stops, at, &rate);
	printk_range_add(&range, after, &stops, at, &rate);
	if (!(range.lo >= 0 && range.hi < 0x1p62))
		return false;
	*dmesg_ns = (uint64_t)((range.lo + range.hi) / 2);
	*err_ns = (uint64_t)ceil((range.hi - range.lo) / 2) + 1;
	return true;
}
