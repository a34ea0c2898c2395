/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/chord.h"

#include <math.h>

#include "proto/event_fields.h"

/* How far the guest's clock may be from a straight line against its TSC, as a share of the time
 * between two samples: it is slewed. */
#define SLEW 1e-3
/* A bound of the agent's own that is off by more than this share of the pause is of another one. */
#define BOUND_SHARE 8
/* So many times as long as the rest of its drain. */
#define PAUSE_LEAST 4

struct chord {
	const struct batch *b;
	uint64_t stopped;
	double pause, length; /* ticks; length: of the chord, with the pause in it */
};

static bool is_inside(const struct chord *c, uint64_t t)
{
	return t >= c->b->chord_begin && t <= c->b->chord_end;
}

static double share(const struct chord *c, uint64_t t)
{
	return (double)(t - c->b->chord_begin) / c->length;
}

/* Ticks since the chord's begin that the clock had gone. */
static double gone(const struct chord *c, uint64_t t)
{
	return share(c, t) * (c->length - c->pause);
}

static uint64_t straight(const struct chord *c, uint64_t t)
{
	double at;

	if (!is_inside(c, t))
		return t;
	at = gone(c, t);
	if (at > (double)(c->stopped - c->b->chord_begin))
		at += c->pause;
	return c->b->chord_begin + (uint64_t)(at + 0.5);
}

/* The bound on each stamp once the pause is taken out: what the agent's bound has beside it. */
static double error_left(const struct chord *c)
{
	double most = 0;

	for (size_t i = 0; i < c->b->n_events; i++) {
		double at = share(c, c->b->events[i].time);

		if (is_inside(c, c->b->events[i].time))
			most = fmax(most, fmax(at, 1 - at));
	}
	return fabs((double)c->b->time_err - most * c->pause) + (c->length - c->pause) * SLEW + 2;
}

static bool side_is_known(const struct chord *c, uint64_t t, double err)
{
	return !is_inside(c, t) ||
	       fabs(gone(c, t) - (double)(c->stopped - c->b->chord_begin)) > err;
}

bool chord_straighten(struct batch *b, const struct vm_clock_pause *pause)
{
	const struct chord c = {
		.b = b,
		.stopped = pause->stopped,
		.pause = (double)(pause->resumed - pause->stopped),
		.length = (double)(b->chord_end - b->chord_begin),
	};
	double err;

	if (pause->stopped < b->chord_begin || pause->resumed > b->chord_end ||
	    c.pause >= c.length || c.pause < PAUSE_LEAST * (c.length - c.pause))
		return false;
	err = error_left(&c);
	if (err > c.pause / BOUND_SHARE)
		return false;
	for (size_t i = 0; i < b->n_events; i++) {
		const struct vs_event *e = &b->events[i];

		if (!side_is_known(&c, e->time, err) ||
		    (e->type == VS_EVENT_LOST && !side_is_known(&c, ev_lost_end(e), err)))
			return false;
	}
	for (size_t i = 0; i < b->n_events; i++) {
		struct vs_event *e = &b->events[i];

		if (e->type == VS_EVENT_LOST)
			ev_set_lost_end(e, straight(&c, ev_lost_end(e)));
		e->time = straight(&c, e->time);
	}
	b->time_err = (uint64_t)ceil(err);
	return true;
}
