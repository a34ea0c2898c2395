/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last seconds of one VM's streams in memory, as the frames that came, and what a reader who
 * begins there must know from before: who speaks, which thread is which vCPU, the clocks'
 * parameters, the stacks and names that later events refer to. Written out it is a recording like
 * any other.
 */
#ifndef DAEMON_FLIGHT_RING_H
#define DAEMON_FLIGHT_RING_H

#include <stddef.h>
#include <stdint.h>

#include "host-collector/model/model.h"

struct flight_ring;
struct recording_writer;

/* Of the frames in it: no older than age_ns, no more than max_bytes with all that is kept beside
 * them. host_hz: ticks of arrival_tsc per second. NULL on ENOMEM. */
struct flight_ring *flight_ring_new(uint64_t age_ns, size_t max_bytes, uint64_t host_hz);
void flight_ring_free(struct flight_ring *r); /* NULL is allowed */
/* Forgets everything: the streams begin anew. */
void flight_ring_clear(struct flight_ring *r);
/* A whole frame, as it would be recorded. Without memory for it, it is missing and counted. */
void flight_ring_push(struct flight_ring *r, uint32_t source, uint64_t arrival_tsc,
		      const uint8_t *frame, size_t len);

/* Who is handed the frames: a recording, or somebody far away. */
struct frame_taker {
	/* As recording_writer_append(). */
	int (*take)(void *context, uint32_t source, uint64_t arrival_tsc, const uint8_t *frame,
		    size_t len);
	void *context;
};
struct frame_taker frame_taker_of(struct recording_writer *out);

/* A recording that goes on after what the ring held: its frames are numbered so that nothing seems
 * to be missing in front. */
struct flight_places;
/* Begins with what the ring holds that arrived at since_tsc or later (0: all of it), and what must
 * be known from before. names: as below. 0 or -errno; *places is the caller's to free in either
 * case, or NULL. */
int flight_ring_begin(const struct flight_ring *r, const struct model *names, uint64_t since_tsc,
		      const struct frame_taker *out, struct flight_places **places);
/* The since_tsc that leaves the newest frames, at most max_bytes of them together. */
uint64_t flight_ring_since(const struct flight_ring *r, size_t max_bytes);
/* Hands over a later frame. 0 or -errno of the taker. */
int flight_places_append(struct flight_places *p, const struct frame_taker *out, uint32_t source,
			 uint64_t arrival_tsc, const uint8_t *frame, size_t len);
void flight_places_free(struct flight_places *p); /* NULL is allowed */

/* Writes a recording. names: who knows the tasks' names. 0 or -errno; a file that was begun stays.
 */
int flight_ring_write(const struct flight_ring *r, const struct model *names, const char *path,
		      uint64_t realtime_ns);

struct flight_ring_stats {
	uint64_t frames, bytes; /* held now, all together */
	uint64_t early;         /* frames that went before their time: no room */
	uint64_t refused;       /* no memory */
};
/* What it holds now; what it lost since it was made. */
void flight_ring_stats_get(const struct flight_ring *r, struct flight_ring_stats *out);

#endif
