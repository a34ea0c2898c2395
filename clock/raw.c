/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A clock sample proves that CLOCK_MONOTONIC_RAW was at most raw_ns at the first TSC read and at
 * least raw_ns at the second. These two facts are the input of a band (band.h).
 */
#include "clock/raw.h"

#include <errno.h>
#include <stdlib.h>

#include "clock/band.h"

/*
 * The kernel's own idea of the TSC rate makes RAW's rate; a bad early calibration has been seen
 * 850 ppm off. One sample pair a second apart narrows this to a tenth of a ppm.
 */
#define RATE_TOLERANCE 2e-3
/* If RAW does not come from the TSC (hpet, acpi_pm), the rates of two crystals differ by a varying
 * amount. */
#define WANDER_PPM_PER_S 0.01

enum { REALTIME_SAMPLES = 1024 };

struct wall {
	uint64_t raw_ns, realtime_ns, monotonic_ns;
};

struct raw_clock {
	struct band *band;
	double ns_per_tick;
	size_t n_walls;
	struct wall walls[REALTIME_SAMPLES]; /* in time order, thinned when full */
};

struct raw_clock *raw_clock_new(uint64_t hz, bool short_memory)
{
	struct raw_clock *c = calloc(1, sizeof(*c));
	double slope = 1e9 / (double)hz;
	const struct band_options options = {
		.slope_min = slope * (1 - RATE_TOLERANCE),
		.slope_max = slope * (1 + RATE_TOLERANCE),
		.wander = slope * WANDER_PPM_PER_S / 1e6 / (double)hz,
		.spacing = hz,
		.short_memory = short_memory,
	};

	if (!c)
		return NULL;
	c->ns_per_tick = options.slope_max;
	c->band = band_new(&options);
	if (!c->band) {
		free(c);
		return NULL;
	}
	return c;
}

void raw_clock_free(struct raw_clock *c)
{
	if (!c)
		return;
	band_free(c->band);
	free(c);
}

int raw_clock_push(struct raw_clock *c, const struct clock_sample *sample)
{
	uint64_t half = sample->tsc_width / 2;
	struct band_fact lower = {sample->tsc + (sample->tsc_width - half), sample->raw_ns};
	struct band_fact upper = {sample->tsc - half, sample->raw_ns};
	int r = band_observe(c->band, lower, upper);

	if (r < 0)
		return r;
	if (c->n_walls == REALTIME_SAMPLES) {
		for (size_t i = 0; i < REALTIME_SAMPLES / 2; i++)
			c->walls[i] = c->walls[i * 2];
		c->n_walls = REALTIME_SAMPLES / 2;
	}
	c->walls[c->n_walls++] =
		(struct wall){sample->raw_ns, sample->realtime_ns, sample->monotonic_ns};
	return 0;
}

struct host_time raw_clock_from_tsc(const struct raw_clock *c, struct host_tsc tsc,
				    uint64_t err_ticks)
{
	uint64_t ns = 0, err = UINT64_MAX;
	double carried = (double)err_ticks * c->ns_per_tick;

	if (band_y(c->band, tsc.ticks, &ns, &err) && err < UINT64_MAX / 4 && carried < 4e18)
		err += (uint64_t)carried + (err_ticks != 0);
	else
		err = UINT64_MAX;
	return (struct host_time){{(int64_t)ns}, err};
}

struct host_tsc raw_clock_to_tsc(const struct raw_clock *c, struct host_ns t)
{
	uint64_t ticks = 0, err;

	band_x(c->band, (uint64_t)t.ns, &ticks, &err);
	return (struct host_tsc){ticks};
}

bool raw_clock_monotonic_point(const struct raw_clock *c, size_t i, struct host_ns *t,
			       struct monotonic_ns *monotonic)
{
	if (i >= c->n_walls)
		return false;
	t->ns = (int64_t)c->walls[i].raw_ns;
	monotonic->ns = c->walls[i].monotonic_ns;
	return true;
}

uint64_t raw_clock_realtime_ns(const struct raw_clock *c, struct host_ns t)
{
	size_t first = 0, end = c->n_walls;
	const struct wall *w;

	if (!end)
		return 0;
	while (end - first > 1) {
		size_t middle = first + (end - first) / 2;

		if ((int64_t)c->walls[middle].raw_ns <= t.ns)
			first = middle;
		else
			end = middle;
	}
	if (first + 1 < c->n_walls &&
	    (int64_t)c->walls[first + 1].raw_ns - t.ns < t.ns - (int64_t)c->walls[first].raw_ns)
		first++;
	w = &c->walls[first];
	return w->realtime_ns + ((uint64_t)t.ns - w->raw_ns);
}
