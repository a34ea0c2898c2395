/* SPDX-License-Identifier: GPL-2.0-only */
/* The events of busy_scene.h in the form in which a live collector gets them: batches from a
 * decoder process or from the host's capture, and the frames between them. */
#ifndef BENCH_BUSY_STREAM_H
#define BENCH_BUSY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/codec.h"
#include "proto/frame_item.h"

/* A frame as it arrives: the events of a batch, or the bytes of another message. */
struct busy_arrival {
	uint32_t source;
	uint64_t tsc;
	struct frame_view frame;
	struct batch batch;
	bool is_batch;
};

struct busy_stream {
	struct busy_arrival *arrivals;
	size_t n, events;
};

/* Fills `out` with `n` events. Returns 0 or -ENOMEM. Call busy_stream_fini() in each case. */
int busy_stream_make(struct busy_stream *out, size_t n);
void busy_stream_fini(struct busy_stream *s);
/* Returns the frame that a listener gets for this arrival. It borrows both arguments. */
struct frame_item busy_arrival_item(const struct busy_arrival *a, struct frame_maker *maker);

#endif
