/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Callers need the map H from guest ticks to host TSC, so the band (band.h) has guest time as x. A
 * round trip proves H(g1) >= h0 and H(g2) <= h3.
 */
#include "clock/echo.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock/band.h"
#include "clock/order.h"

#define SLOPE_DEFAULT_PPM 200.0
/*
 * Crystals of servers move by some hundredths of a ppm per minute with temperature; a clock that
 * is derived from the host's TSC does not move at all.
 */
#define WANDER_DEFAULT_PPM_PER_S 0.01
/*
 * A guest that measures its TSC's rate in its first seconds can be 850 ppm off. Where the nominal
 * ratio is that near to 1, "the guest's TSC is the host's" is held possible too.
 */
#define SAME_RATE_PPM 2000.0

struct echo_sync {
	struct band *band;
	struct order *order; /* for a clock that proves unsteady */
	double host_per_guest;
	bool announced; /* the break before the next observation */
	uint64_t observations, contradictions;
	uint64_t best_round_trip, best_guest, epoch_best_round_trip;
};

struct echo_sync *echo_sync_new(const struct echo_options *options)
{
	struct echo_sync *s = calloc(1, sizeof(*s));
	double ratio = (double)options->host_hz / (double)options->stream_hz;
	double ppm = options->slope_ppm > 0 ? options->slope_ppm : SLOPE_DEFAULT_PPM;
	double wander = options->wander_ppm_per_s > 0 ? options->wander_ppm_per_s
						      : WANDER_DEFAULT_PPM_PER_S;
	bool same = fabs(ratio - 1) <= SAME_RATE_PPM / 1e6;
	const struct band_options band = {
		.slope_min = (same ? fmin(ratio, 1) : ratio) * (1 - ppm / 1e6),
		.slope_max = (same ? fmax(ratio, 1) : ratio) * (1 + ppm / 1e6),
		.wander = ratio * wander / 1e6 / (double)options->stream_hz,
		.spacing = options->stream_hz,
		.short_memory = options->short_memory,
	};

	if (!s)
		return NULL;
	s->host_per_guest = ratio;
	s->best_round_trip = s->epoch_best_round_trip = UINT64_MAX;
	s->band = band_new(&band);
	s->order = order_new(options->short_memory);
	if (!s->band || !s->order) {
		echo_sync_free(s);
		return NULL;
	}
	return s;
}

void echo_sync_free(struct echo_sync *s)
{
	if (!s)
		return;
	band_free(s->band);
	order_free(s->order);
	free(s);
}

int echo_sync_add(struct echo_sync *s, const struct echo_observation *o)
{
	const struct band_fact lower = {o->guest_received, o->sent.ticks};
	const struct band_fact upper = {o->guest_sent, o->received.ticks};
	uint64_t in_guest = o->guest_sent - o->guest_received;
	double round_trip;
	int r = -EINVAL;

	s->observations++;
	if (o->guest_sent >= o->guest_received && o->received.ticks >= o->sent.ticks)
		r = band_observe(s->band, lower, upper);
	if (r == -EINVAL)
		s->contradictions++;
	if (r < 0)
		return r;
	/* An epoch that the caller announced says nothing against the clock. */
	if (order_observe(s->order, o->guest_received, o->sent.ticks, o->guest_sent,
			  o->received.ticks, r == 0 || s->announced))
		return -ENOMEM;
	s->announced = false;
	round_trip =
		(double)(o->received.ticks - o->sent.ticks) - (double)in_guest * s->host_per_guest;
	if (round_trip < 0)
		round_trip = 0;
	if (round_trip < (double)s->best_round_trip) {
		s->best_round_trip = (uint64_t)round_trip;
		s->best_guest = o->guest_sent;
	}
	if (r == 1 || round_trip < (double)s->epoch_best_round_trip)
		s->epoch_best_round_trip = (uint64_t)round_trip;
	return r;
}

int echo_sync_not_after(struct echo_sync *s, uint64_t guest, struct host_tsc host)
{
	int r = band_upper(s->band, (struct band_fact){guest, host.ticks});

	order_not_after(s->order, guest, host.ticks);
	s->contradictions += r == -EINVAL;
	return r;
}

void echo_sync_break_at(struct echo_sync *s, struct host_tsc host)
{
	s->announced = true;
	band_break_at(s->band, host.ticks);
}

bool echo_sync_to_host(const struct echo_sync *s, uint64_t guest, struct host_tsc *host,
		       uint64_t *err_ticks)
{
	if (order_unsteady(s->order, guest))
		return order_y(s->order, guest, &host->ticks, err_ticks);
	return band_y(s->band, guest, &host->ticks, err_ticks);
}

bool echo_sync_to_guest(const struct echo_sync *s, struct host_tsc host, uint64_t *guest,
			uint64_t *err_ticks)
{
	return band_x(s->band, host.ticks, guest, err_ticks);
}

void echo_sync_summarise(const struct echo_sync *s, struct echo_sync_summary *out)
{
	struct band_summary band;
	double slope_min, slope_max;
	struct host_tsc newest;

	memset(out, 0, sizeof(*out));
	band_summarise(s->band, &band);
	out->epochs = band.epochs;
	out->observations = s->observations;
	out->contradictions = s->contradictions;
	if (!band.epochs)
		return;
	out->best_round_trip_ticks = s->best_round_trip;
	out->epoch_best_round_trip_ticks = s->epoch_best_round_trip;
	out->best_guest = s->best_guest;
	out->newest_guest = band.newest_x;
	out->err_ticks = band.err;
	out->ratio_min = 1 / band.slope_max;
	out->ratio_max = 1 / band.slope_min;
	out->unsteady = order_ever_unsteady(s->order);
	if (!out->unsteady)
		return;
	if (order_slope(s->order, &slope_min, &slope_max)) {
		out->ratio_min = 1 / slope_max;
		out->ratio_max = 1 / slope_min;
	}
	echo_sync_to_host(s, out->newest_guest, &newest, &out->err_ticks);
}

bool echo_sync_epoch_get(const struct echo_sync *s, size_t i, struct echo_epoch *out)
{
	struct band_epoch e;

	if (!band_epoch_get(s->band, i, &e))
		return false;
	*out = (struct echo_epoch){
		.first_guest = e.first_x,
		.last_guest = e.last_x,
		.first_host = {e.first_y},
		.last_host = {e.last_y},
		.ratio_min = 1 / e.slope_max,
		.ratio_max = 1 / e.slope_min,
	};
	return true;
}

bool echo_sync_unsteady(const struct echo_sync *s)
{
	return order_ever_unsteady(s->order);
}
