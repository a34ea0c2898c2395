/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/framer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct framer {
	struct batch_encoder *encoder;
	struct frame_writer *writer;
	struct byte_buffer payload, frame;
	struct record_head unknown_of;
	struct record_unknown unknown; /* n 0: none */
};

struct framer *framer_new(void)
{
	struct framer *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->encoder = batch_encoder_new();
	f->writer = frame_writer_new(0);
	if (!f->encoder || !f->writer) {
		framer_free(f);
		return NULL;
	}
	batch_encoder_relay(f->encoder);
	return f;
}

void framer_free(struct framer *f)
{
	if (!f)
		return;
	batch_encoder_free(f->encoder);
	frame_writer_free(f->writer);
	byte_buffer_fini(&f->payload);
	byte_buffer_fini(&f->frame);
	free(f);
}

static int pack_batch(struct framer *f, struct guest_record *r)
{
	const struct batch batch = {
		.cpu = (uint16_t)r->batch.cpu,
		.time_err = r->batch.time_err,
		.watermark = r->batch.watermark,
		.emitted = r->batch.emitted,
		.dropped_kernel = r->batch.dropped_kernel,
		.dropped_user = r->batch.dropped_user,
		.chord_begin = r->batch.chord_begin,
		.chord_end = r->batch.chord_end,
		.n_events = r->batch.n_events,
		.events = r->batch.events,
	};

	return batch_encode(f->encoder, &batch, &f->payload);
}

static int message_repack(struct framer *f, struct guest_record *r, uint8_t kind)
{
	const struct message_layout *message = frame_kind_row(kind)->message;

	/* Unpacked again: unpacking knows which values have a meaning. */
	return message_pack(message, record_message(r), &f->payload) ||
	       message_unpack(message, f->payload.data, f->payload.len, record_message(r)) ||
	       (kind == FRAME_HELLO && r->hello.role != STREAM_ROLE_GUEST);
}

void framer_unknown(struct framer *f, const struct guest_record *r)
{
	f->unknown_of = r->head;
	f->unknown.n = r->unknown.n;
	memcpy(f->unknown.bytes, r->unknown.bytes, r->unknown.n);
}

/* Behind the known fields, where a reader of protobuf takes them as well as anywhere. */
static int unknown_append(struct framer *f, const struct guest_record *r, uint8_t kind)
{
	const struct record_unknown *u = &f->unknown;

	if (!u->n || f->unknown_of.session_id != r->head.session_id ||
	    f->unknown_of.frame_seq != r->head.frame_seq || !unknown_check(kind, u->bytes, u->n))
		return 0;
	return byte_buffer_append(&f->payload, u->bytes, u->n);
}

/* Empty: a reader sees that a frame was there, and of what kind. */
static int unknown_frame(struct framer *f, const struct guest_record *r)
{
	const uint32_t kind = r->unknown_frame.kind;

	if (!kind || kind > UINT8_MAX || frame_kind_senders((uint8_t)kind))
		return -EINVAL;
	return frame_write(f->writer, (enum frame_kind)kind, f->payload.data, 0, &f->frame);
}

static int known_frame(struct framer *f, struct guest_record *r)
{
	const uint8_t kind = (uint8_t)r->head.kind;
	int err;

	if (r->head.kind > UINT8_MAX || !(frame_kind_senders(kind) & FRAME_BY_AGENT))
		return -EINVAL;
	if (kind == FRAME_BATCH ? pack_batch(f, r) : message_repack(f, r, kind))
		return -EINVAL;
	err = unknown_append(f, r, kind);
	f->unknown.n = 0;
	return err ? err : frame_write(f->writer, kind, f->payload.data, f->payload.len, &f->frame);
}

int framer_frame(struct framer *f, struct guest_record *r, struct frame_view *out)
{
	int err;

	f->payload.len = f->frame.len = 0;
	if (byte_buffer_reserve(&f->payload, 0)) /* an empty message is a message */
		return -ENOMEM;
	err = r->head.kind == RECORD_UNKNOWN_FRAME ? unknown_frame(f, r) : known_frame(f, r);
	if (err)
		return err;
	frame_restamp(f->frame.data, r->head.session_id, r->head.frame_seq);
	return frame_parse(f->frame.data, f->frame.len, out);
}
