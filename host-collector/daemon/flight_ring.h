/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the last seconds of one VM's streams in memory, as the frames that were received. It also
 * keeps older frames that a reader needs to interpret the recent ones: HELLO, VM information, CPU
 * quota, clock parameters, stacks, origins of tasks (of the last VS_REPEAT_S before), and whether
 * QEMU paused or migrates the VM.
 * Written to a file, the content is a normal recording.
 */
#ifndef DAEMON_FLIGHT_RING_H
#define DAEMON_FLIGHT_RING_H

#include <stddef.h>
#include <stdint.h>

#include "host-collector/model/model.h"
#include "proto/frame_item.h"

struct flight_ring;
struct recording_writer;

/* Allocates a ring. Frames are removed when they are older than age_ns and not held, or when recent
 * and older frames together exceed max_bytes. host_hz: frequency of arrival_tsc. Returns NULL if
 * there is no memory. */
struct flight_ring *flight_ring_new(uint64_t age_ns, size_t max_bytes, uint64_t host_hz);
void flight_ring_free(struct flight_ring *r); /* NULL is allowed */
/* Removes all frames: the streams start again. */
void flight_ring_clear(struct flight_ring *r);
/* Adds a copy of a frame. Without memory for it, counts it as refused. */
void flight_ring_push(struct flight_ring *r, uint32_t source, uint64_t arrival_tsc,
		      struct frame_item *frame);

/* Keeps frames that arrived at since_tsc or later, whatever their age, until
 * flight_ring_release(). max_bytes still holds. If frames are held already, the earlier time
 * counts. */
void flight_ring_hold(struct flight_ring *r, uint64_t since_tsc);
void flight_ring_release(struct flight_ring *r);

/* The receiver of frames: a recording or a client of the control socket. */
struct frame_taker {
	/* Like recording_writer_append(). */
	int (*take)(void *context, uint32_t source, uint64_t arrival_tsc, const uint8_t *frame,
		    size_t len);
	void *context;
};
struct frame_taker frame_taker_of(struct recording_writer *out);

/* The state of a recording that starts with the ring's frames and continues with later frames. It
 * renumbers each source's first session from 0, so that a reader does not count older frames as
 * lost. */
struct flight_places;
/* Writes the frames that arrived at since_tsc or later (0: all), and before them the older frames
 * that a reader needs and the tasks' names, which the model `names` knows. Returns 0 or -errno. The
 * caller frees *places, which may be NULL, in any case. */
int flight_ring_begin(const struct flight_ring *r, const struct model *names, uint64_t since_tsc,
		      const struct frame_taker *out, struct flight_places **places);
/* Returns the since_tsc that selects the newest frames, at most max_bytes of them. */
uint64_t flight_ring_since(const struct flight_ring *r, size_t max_bytes);
/* Renumbers a later frame and passes it to `out`. Returns 0 or the -errno of `out`. */
int flight_places_append(struct flight_places *p, const struct frame_taker *out, uint32_t source,
			 uint64_t arrival_tsc, const uint8_t *frame, size_t len);
void flight_places_free(struct flight_places *p); /* NULL is allowed */

/* Writes the ring's content to a recording at `path`. names: see flight_ring_begin(). Returns 0 or
 * -errno; on an error a partial file remains. */
int flight_ring_write(const struct flight_ring *r, const struct model *names, const char *path,
		      uint64_t realtime_ns);

struct flight_ring_stats {
	uint64_t frames, bytes; /* held now: recent and older */
	uint64_t early;         /* frames removed before their time because memory was full */
	uint64_t refused;       /* frames not kept: no memory */
};
/* Returns what the ring holds now, and the totals since flight_ring_new(). */
void flight_ring_stats_get(const struct flight_ring *r, struct flight_ring_stats *out);

#endif
