/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Echo sync: bounds on the map from a guest's stream clock to host TSC, from round trips alone.
 *
 * Each round trip (h0 sent, g1 received, g2 sent back, h3 arrived) proves G(h0) <= g1 and
 * g2 <= G(h3) for the true map G, and nothing else: asymmetry is real, so nothing is averaged and
 * no midpoint is believed. Within an epoch the rate of G lies within `slope_ppm` of nominal and
 * changes by at most `wander_ppm_per_s`; the maps that satisfy all constraints give, at any guest
 * time, an interval that holds the truth. A constraint that leaves no map starts a new epoch (the
 * guest's clock was stopped or stepped, or the VM migrated).
 *
 * Where round trips show that the clock is not steady at all (most of them contradict every steady
 * map through those before), only their order is believed (order.h).
 *
 * What round trips cannot show: a step smaller than the interval at that time. A caller that knows
 * of one (QMP STOP, RESUME) says so with echo_sync_break().
 */
#ifndef CLOCK_ECHO_H
#define CLOCK_ECHO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"

struct echo_options {
	uint64_t host_hz;   /* TSC rate */
	uint64_t stream_hz; /* nominal rate of the guest's stream clock */
	/* How far the true ratio may be from nominal; 0: the default, 200. A nominal ratio within
	 * 2000 ppm of 1 admits 1 too, because guests measure their own rate badly at first. */
	double slope_ppm;
	double wander_ppm_per_s; /* how fast the ratio may change; 0: the default, 0.01 */
};

struct echo_observation {
	struct host_tsc sent;
	uint64_t guest_received, guest_sent; /* ticks of the guest's stream clock */
	struct host_tsc received;
};

struct echo_sync;

struct echo_sync *echo_sync_new(const struct echo_options *options); /* NULL on ENOMEM */
void echo_sync_free(struct echo_sync *s);
/* Observations must come in order of `received`. 0, 1 if it began a new epoch, -EINVAL if the
 * observation contradicts itself (ignored), -ENOMEM. */
int echo_sync_add(struct echo_sync *s, const struct echo_observation *o);
/* A one-sided fact: the guest stamped `guest` no earlier (later: no later) than host time `host`.
 * From causality between matched events, or from the arrival of any message. 0; -EINVAL if it
 * contradicts the present epoch (counted, ignored: the next observation shows whether an epoch
 * began); -ENOENT before the first observation. */
int echo_sync_not_before(struct echo_sync *s, uint64_t guest, struct host_tsc host);
int echo_sync_not_after(struct echo_sync *s, uint64_t guest, struct host_tsc host);
/* The clock may have been stepped since the last observation: the next one begins a new epoch. */
void echo_sync_break(struct echo_sync *s);
/* The same, where it is known when: it stood still from `host` at the latest (QMP STOP), or went on
 * at `host` at the earliest (RESUME). */
void echo_sync_break_at(struct echo_sync *s, struct host_tsc host);

/* Host TSC at guest time: the midpoint of the feasible interval and half its width. Uses the epoch
 * that `guest` falls into; between two epochs the interval covers both. Of a clock that was set
 * back, times that occurred twice are taken for the newest pass whose observations enclose them.
 * Beyond the newest observation no step is assumed. false before the first observation, or in an
 * epoch long forgotten (1024 are kept). */
bool echo_sync_to_host(const struct echo_sync *s, uint64_t guest, struct host_tsc *host,
		       uint64_t *err_ticks);
bool echo_sync_to_guest(const struct echo_sync *s, struct host_tsc host, uint64_t *guest,
			uint64_t *err_ticks);

struct echo_sync_summary {
	size_t epochs;
	uint64_t observations, contradictions;
	/* In host TSC, without the time spent in the guest: of all, of the current epoch. */
	uint64_t best_round_trip_ticks, epoch_best_round_trip_ticks;
	uint64_t best_guest;   /* guest time of the best of all */
	uint64_t newest_guest; /* guest time of the newest observation */
	uint64_t err_ticks;    /* half-width there */
	double ratio_min,
		ratio_max; /* guest ticks per host tick, current epoch; unsteady: mean of all */
	bool unsteady;
};
/* Cheap: of what is known now. */
void echo_sync_summarise(const struct echo_sync *s, struct echo_sync_summary *out);

/* Was the clock unsteady anywhere? Then the map is no line between two conversions either. */
bool echo_sync_unsteady(const struct echo_sync *s);

/* What one epoch covers, by both clocks (the host's: middle of the interval). */
struct echo_epoch {
	uint64_t first_guest, last_guest;
	struct host_tsc first_host, last_host;
	double ratio_min, ratio_max; /* guest ticks per host tick */
};
/* The i-th epoch that is kept, oldest first; false beyond the last. */
bool echo_sync_epoch_get(const struct echo_sync *s, size_t i, struct echo_epoch *out);

#endif
