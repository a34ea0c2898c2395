/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A frame of a live stream on its way to its users. A batch arrives as its events. Its bytes are
 * made when a user first asks for them (a recording, the flight recorder, a client of the daemon),
 * and only once; a user that wants the events only takes `batch`. All other frames arrive as bytes.
 */
#ifndef PROTO_FRAME_ITEM_H
#define PROTO_FRAME_ITEM_H

#include "proto/codec.h"
#include "proto/frame.h"

struct frame_maker;

struct frame_item {
	uint8_t kind;
	uint64_t session_id;
	uint32_t frame_seq;
	const struct batch *batch; /* the events of a batch; NULL: `frame` holds the content */
	/* Fields of a newer agent's Batch that this version does not know (unknown.h). */
	const uint8_t *unknown;
	size_t unknown_bytes;
	/* For frame_item_frame() only. */
	struct frame_maker *maker;
	struct frame_view frame; /* len 0: not made yet */
};

/* Makes frames of payloads. Owns the bytes of the last one. */
struct frame_maker *frame_maker_new(void); /* NULL: no memory */
void frame_maker_free(struct frame_maker *m);
/* Makes the frame of a packed message. `out` is valid until the next frame is made. Returns 0 or an
 * error of frame_write(). */
int frame_maker_frame(struct frame_maker *m, uint8_t kind, uint64_t session_id, uint32_t frame_seq,
		      const uint8_t *payload, size_t len, struct frame_view *out);

/* Returns the item of a frame that exists; borrows its bytes. */
struct frame_item frame_item_of(const struct frame_view *frame);
/* Returns the frame. Encodes the batch at the first call. `out` is valid as long as the item's
 * content and until the item's maker makes another frame. Returns 0 or an error of batch_encode()
 * or frame_write(). */
int frame_item_frame(struct frame_item *item, struct frame_view *out);

#endif
