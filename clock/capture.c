/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Converts CLOCK_MONOTONIC to TSC on a straight line (the chord) between two samples and bounds
 * the deviation of the true time from the chord. Both ends are known. If the rate lies within c +-
 * s throughout, the deviation at distance u from one end of a span L is at most 2*s*u*(L-u)/L,
 * whatever the slope of the chord: before this point the true time can gain at most (rate_max -
 * chord)*u, and after it it must lose this at a rate of at most chord - rate_min.
 */
#include "clock/sample.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "clock/minmax.h"

/* MAXFREQ of include/linux/timex.h: what an NTP daemon may set at any moment. */
#define FREQUENCY_MAX_PPB 500000.0
/* The kernel steers by single units of a multiplier of 22 bits or more (timekeeping.c). */
#define STEERING_PPB 500.0
/* Clocks that the vDSO cannot read tick coarsely; acpi_pm, the coarsest, every 279.4 ns. */
#define SLOW_BRACKET_NS 1000.0
#define SLOW_GRANULE_NS 280.0
/* A span whose TSC rate differs by more than this from the previous one contains a jump. A VMM's
 * corrections of kvmclock are smaller. */
#define RATE_TOLERANCE 2000e-6

void capture_clock_init(struct capture_clock *c)
{
	memset(c, 0, sizeof(*c));
}

/* Ticks per ns of CLOCK_MONOTONIC_RAW since `begin`, and how far that may be off, relatively. */
static double rate_since(const struct capture_clock *c, const struct clock_sample *begin,
			 double *tolerance)
{
	double ticks = (double)(c->after.tsc - begin->tsc);
	double raw_ns = (double)(int64_t)(c->after.raw_ns - begin->raw_ns);

	*tolerance = RATE_TOLERANCE + (double)(begin->tsc_width + c->after.tsc_width) / ticks;
	return raw_ns > 0 ? ticks / raw_ns : 0;
}

/*
 * TSC against CLOCK_MONOTONIC_RAW is constant while the guest runs. A span whose rate differs holds
 * a jump; two such spans in a row with one rate are a new rate (a migration).
 */
static void jump_find(struct capture_clock *c)
{
	double tolerance, rate = rate_since(c, &c->before, &tolerance);

	c->jump_ticks = 0;
	if (rate <= 0 || c->ticks_per_raw_ns <= 0 ||
	    fabs(rate / c->ticks_per_raw_ns - 1) <= tolerance ||
	    (c->jumped_rate > 0 && fabs(rate / c->jumped_rate - 1) <= tolerance))
		return;
	c->jump_ticks =
		fabs((double)(c->after.tsc - c->before.tsc) -
		     (double)(int64_t)(c->after.raw_ns - c->before.raw_ns) * c->ticks_per_raw_ns);
	c->pushed_jump = true;
}

/* Updates the rate from the time since the last push. */
static void rate_learn(struct capture_clock *c)
{
	double tolerance, rate = rate_since(c, &c->pushed, &tolerance);

	if (rate <= 0)
		return;
	if (c->pushed_jump) {
		c->jumped_rate = rate;
		return;
	}
	c->ticks_per_raw_ns = rate;
	c->jumped_rate = 0;
}

/* Clocks that went back or stood still (suspend) leave nothing to interpolate from. */
static bool is_later(const struct clock_sample *sample, const struct clock_sample *than)
{
	return sample->tsc > than->tsc && sample->monotonic_ns > than->monotonic_ns;
}

static void span_begin(struct capture_clock *c, const struct clock_sample *end)
{
	c->before = c->after;
	c->after = *end;
	c->n_samples++;
	jump_find(c);
}

void capture_clock_push(struct capture_clock *c, const struct clock_sample *sample)
{
	if (c->n_samples >= 2)
		rate_learn(c);
	if (!c->n_samples || !is_later(sample, &c->after)) {
		c->before = c->after = c->pushed = *sample;
		c->n_samples = 1;
		c->pushed_jump = false;
		return;
	}
	c->pushed = c->after;
	c->pushed_jump = false;
	span_begin(c, sample);
}

void capture_clock_extend(struct capture_clock *c, const struct clock_sample *sample)
{
	if (c->n_samples >= 2 && is_later(sample, &c->after))
		span_begin(c, sample);
}

static double slew_limit_ppb(const struct capture_clock *c, double chord_ppb)
{
	double limit = FREQUENCY_MAX_PPB;

	limit = larger(limit, c->before.slew_ppb);
	limit = larger(limit, c->after.slew_ppb);
	/* More than anybody admits to, and still a fact. */
	if (fabs(chord_ppb) > limit)
		limit = fabs(chord_ppb) + FREQUENCY_MAX_PPB;
	return limit + STEERING_PPB;
}

/* Returns how far the true clock may be from the chord, in ns. */
static double bend_ns(const struct capture_clock *c, double span, double from_before,
		      double ns_per_tick)
{
	double raw_span = (double)(int64_t)(c->after.raw_ns - c->before.raw_ns);
	double chord_ppb = raw_span > 0 ? (span / raw_span - 1) * 1e9 : 0;
	double slew = 2 * slew_limit_ppb(c, chord_ppb) / 1e9;
	double to_nearer = smaller(from_before, span - from_before);
	double bend;

	if (to_nearer < 0)
		return slew * -to_nearer;
	bend = slew * from_before * (span - from_before) / span;
	if (raw_span > 0 && c->before.steady && c->after.steady &&
	    c->before.rate_ppb == c->after.rate_ppb) {
		/* Both clocks were read somewhere in the brackets, and rounded down. */
		double unsure =
			(double)(c->before.tsc_width + c->after.tsc_width) * ns_per_tick + 2;
		double missing = fabs(span - raw_span * (1 + c->before.rate_ppb / 1e9));

		bend = smaller(bend, missing + unsure + to_nearer * STEERING_PPB / 1e9);
	}
	return bend;
}

/* Their product fits in 64 bits. */
static bool span_is_short(uint64_t ns, uint64_t ticks)
{
	return ns < (1ull << CLOCK_CHORD_FRACTION) && ticks < (1ull << 33);
}

bool clock_chord_init(struct clock_chord *chord, const struct capture_clock *c)
{
	const uint64_t ns = c->after.monotonic_ns - c->before.monotonic_ns;
	const uint64_t ticks = c->after.tsc - c->before.tsc;

	*chord = (struct clock_chord){0};
	if (c->n_samples < 2 || c->jump_ticks > 0 || !span_is_short(ns, ticks))
		return false;
	*chord = (struct clock_chord){.begin_ns = c->before.monotonic_ns,
				      .begin_tsc = c->before.tsc,
				      .ns = ns,
				      .ticks = ticks,
				      .ratio = (ticks << CLOCK_CHORD_FRACTION) / ns};
	return true;
}

uint64_t capture_clock_to_tsc(const struct capture_clock *c, uint64_t monotonic_ns,
			      uint64_t *err_ticks)
{
	int64_t from_before = (int64_t)(monotonic_ns - c->before.monotonic_ns);
	uint64_t span = c->after.monotonic_ns - c->before.monotonic_ns;
	uint64_t ticks = c->after.tsc - c->before.tsc;
	uint64_t width =
		c->before.tsc_width > c->after.tsc_width ? c->before.tsc_width : c->after.tsc_width;
	double ns_per_tick, error_ns, error_ticks, outside;
	int64_t delta;

	if (c->n_samples < 2) {
		*err_ticks = UINT64_MAX;
		return c->after.tsc;
	}
	ns_per_tick = (double)span / (double)ticks;
	if ((uint64_t)from_before <= span && span_is_short(span, ticks))
		delta = (int64_t)((uint64_t)from_before * ticks / span);
	else
		delta = (int64_t)((__int128)from_before * (int64_t)ticks / (int64_t)span);
	error_ns = 1 + bend_ns(c, (double)span, (double)from_before, ns_per_tick);
	if ((double)width * ns_per_tick > SLOW_BRACKET_NS)
		error_ns += SLOW_GRANULE_NS;
	/* The chord turns about one end by what the other end's bracket allows. */
	outside = larger(0, larger(-(double)from_before, (double)from_before - (double)span));
	error_ticks = error_ns / ns_per_tick + (double)width * outside / (double)span;
	if (c->jump_ticks > 0) /* before or after the event */
		error_ticks += c->jump_ticks *
			       larger(fabs((double)from_before),
				      fabs((double)span - (double)from_before)) /
			       (double)span;
	*err_ticks = (width + 1) / 2 + 2 + (uint64_t)smaller(error_ticks, 1e18);
	return c->before.tsc + (uint64_t)delta;
}
