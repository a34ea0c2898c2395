/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Echo sync computes a clock map from a guest's stream clock, which gives the stamps of its events,
 * to the host TSC. Its only inputs are round trips.
 *
 * A round trip (sent at h0, received by the guest at g1, answered at g2, received at h3) proves
 * G(h0) <= g1 and g2 <= G(h3) for the true map G. Nothing is averaged, because the two directions
 * can take different times. Within an epoch the rate of G lies within `slope_ppm` of nominal and
 * changes by at most `wander_ppm_per_s`. At each guest time, the maps that satisfy all these
 * constraints give an interval that contains the true host time. If no map satisfies a new
 * constraint, a new epoch begins: the guest's clock was stopped or stepped, or the VM migrated.
 *
 * If most round trips contradict every steady map through the earlier ones, the clock is unsteady,
 * and only the order of the round trips is used (order.h).
 *
 * Round trips do not show a step of the clock that is smaller than the interval at that time. A
 * caller that knows of one (QMP STOP, RESUME) calls echo_sync_break_at().
 */
#ifndef CLOCK_ECHO_H
#define CLOCK_ECHO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"

struct echo_options {
	uint64_t host_hz;   /* TSC frequency */
	uint64_t stream_hz; /* nominal frequency of the guest's stream clock */
	/* Largest deviation of the true ratio from nominal, ppm; 0: the default, 200. If the
	 * nominal ratio is within 2000 ppm of 1, a ratio of 1 is also possible, because guests
	 * measure their TSC frequency badly at first. */
	double slope_ppm;
	double wander_ppm_per_s; /* largest change of the ratio; 0: the default, 0.01 */
	/* For a session that converts only times of the last minutes: of older times it keeps less,
	 * so that it needs 32 KiB instead of 900. */
	bool short_memory;
};

struct echo_observation {
	struct host_tsc sent;
	uint64_t guest_received, guest_sent; /* ticks of the guest's stream clock */
	struct host_tsc received;
};

struct echo_sync;

/* Returns NULL if out of memory. */
struct echo_sync *echo_sync_new(const struct echo_options *options);
void echo_sync_free(struct echo_sync *s);
/* Adds a round trip. Add them in order of `received`. Returns 0, 1 if the round trip began a new
 * epoch, -EINVAL if it contradicts itself (it is ignored) or -ENOMEM. */
int echo_sync_add(struct echo_sync *s, const struct echo_observation *o);
/*
 * Adds a one-sided fact: the guest read `guest` at host time `host` or earlier. The arrival of any
 * message is such a fact. Returns 0, -EINVAL if the fact contradicts the current epoch (it is
 * counted and ignored; the next observation shows whether a new epoch began) or -ENOENT before the
 * first observation.
 */
int echo_sync_not_after(struct echo_sync *s, uint64_t guest, struct host_tsc host);
/* Makes the next observation begin a new epoch, because the clock may have been stepped: it had
 * stopped by `host` (QMP STOP), or did not run again before `host` (RESUME). */
void echo_sync_break_at(struct echo_sync *s, struct host_tsc host);

/*
 * Convert guest time to host TSC and back. The result is the midpoint of the feasible interval;
 * *err_ticks is half its width. The epoch that contains `guest` applies; between two epochs the
 * interval covers both. If the clock was set back and a guest time occurred more than once, the
 * newest epoch whose observations enclose it applies. After the newest observation, the conversion
 * assumes no step.
 *
 * Return false before the first observation, and for times in a dropped epoch (1024 epochs are
 * kept).
 */
bool echo_sync_to_host(const struct echo_sync *s, uint64_t guest, struct host_tsc *host,
		       uint64_t *err_ticks);
bool echo_sync_to_guest(const struct echo_sync *s, struct host_tsc host, uint64_t *guest,
			uint64_t *err_ticks);

struct echo_sync_summary {
	size_t epochs;
	uint64_t observations, contradictions;
	/* Host TSC ticks, without the time inside the guest: shortest of all, shortest of the
	 * current epoch. */
	uint64_t best_round_trip_ticks, epoch_best_round_trip_ticks;
	uint64_t best_guest;   /* guest time of the shortest round trip of all */
	uint64_t newest_guest; /* guest time of the newest observation */
	uint64_t err_ticks;    /* bound at newest_guest */
	/* Guest ticks per host tick in the current epoch; if unsteady, the mean over all time. */
	double ratio_min, ratio_max;
	bool unsteady;
};
/* Copies the current values. Cheap. Before the first observation, all members but the counters are
 * zero. */
void echo_sync_summarise(const struct echo_sync *s, struct echo_sync_summary *out);

/* Returns true if the clock was ever unsteady. Then the map between two conversions is not a
 * line. */
bool echo_sync_unsteady(const struct echo_sync *s);

/* The range of one epoch on both clocks (host: middle of the interval). */
struct echo_epoch {
	uint64_t first_guest, last_guest;
	struct host_tsc first_host, last_host;
	double ratio_min, ratio_max; /* guest ticks per host tick */
};
/* Copies the i-th stored epoch, oldest first. Returns false past the last. */
bool echo_sync_epoch_get(const struct echo_sync *s, size_t i, struct echo_epoch *out);

#endif
