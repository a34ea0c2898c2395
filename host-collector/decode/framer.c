/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/framer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct framer {
	struct frame_maker *maker;
	struct byte_buffer payload;
	struct batch batch; /* of the newest item */
	struct record_head unknown_of;
	struct record_unknown unknown; /* n 0: none */
};

struct framer *framer_new(void)
{
	struct framer *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->maker = frame_maker_new();
	if (!f->maker) {
		framer_free(f);
		return NULL;
	}
	return f;
}

void framer_free(struct framer *f)
{
	if (!f)
		return;
	frame_maker_free(f->maker);
	byte_buffer_fini(&f->payload);
	free(f);
}

void framer_unknown(struct framer *f, const struct guest_record *r)
{
	f->unknown_of = r->head;
	f->unknown.n = r->unknown.n;
	memcpy(f->unknown.bytes, r->unknown.bytes, r->unknown.n);
}

static int message_repack(struct framer *f, struct guest_record *r, uint8_t kind)
{
	const struct message_layout *message = frame_kind_row(kind)->message;

	/* Unpacked again: unpacking knows which values have a meaning. */
	return message_pack(message, record_message(r), &f->payload) ||
	       message_unpack(message, f->payload.data, f->payload.len, record_message(r)) ||
	       (kind == FRAME_HELLO && r->hello.role != STREAM_ROLE_GUEST);
}

/* The newer agent's fields of this frame; NULL: it has none. */
static const struct record_unknown *unknown_of(const struct framer *f, const struct guest_record *r)
{
	const struct record_unknown *u = &f->unknown;

	if (!u->n || f->unknown_of.session_id != r->head.session_id ||
	    f->unknown_of.frame_seq != r->head.frame_seq ||
	    !unknown_check((uint8_t)r->head.kind, u->bytes, u->n))
		return NULL;
	return u;
}

static int batch_item(struct framer *f, struct guest_record *r, struct frame_item *out)
{
	const struct record_unknown *unknown = unknown_of(f, r);

	f->batch = (struct batch){
		.cpu = (uint16_t)r->batch.cpu,
		.time_err = r->batch.time_err,
		.watermark = r->batch.watermark,
		.emitted = r->batch.emitted,
		.dropped_kernel = r->batch.dropped_kernel,
		.dropped_user = r->batch.dropped_user,
		.tsc_cpu = r->batch.tsc_cpu,
		.chord_begin = r->batch.chord_begin,
		.chord_end = r->batch.chord_end,
		.n_events = r->batch.n_events,
		.events = r->batch.events,
	};
	*out = (struct frame_item){.kind = FRAME_BATCH,
				   .session_id = r->head.session_id,
				   .frame_seq = r->head.frame_seq,
				   .batch = &f->batch,
				   .unknown = unknown ? unknown->bytes : NULL,
				   .unknown_bytes = unknown ? unknown->n : 0,
				   .maker = f->maker};
	return batch_validate(&f->batch) ? -EINVAL : 0;
}

static int frame_make(struct framer *f, const struct guest_record *r, uint8_t kind,
		      struct frame_item *out)
{
	struct frame_view frame;
	const int err = frame_maker_frame(f->maker, kind, r->head.session_id, r->head.frame_seq,
					  f->payload.data, f->payload.len, &frame);

	if (!err)
		*out = frame_item_of(&frame);
	return err;
}

/* Empty: a reader sees that a frame was there, and of what kind. */
static int unknown_frame(struct framer *f, const struct guest_record *r, struct frame_item *out)
{
	const uint32_t kind = r->unknown_frame.kind;

	if (!kind || kind > UINT8_MAX || frame_kind_senders((uint8_t)kind))
		return -EINVAL;
	return frame_make(f, r, (uint8_t)kind, out);
}

static int message_item(struct framer *f, struct guest_record *r, struct frame_item *out)
{
	const struct record_unknown *unknown;
	int err = 0;

	if (message_repack(f, r, (uint8_t)r->head.kind))
		return -EINVAL;
	/* Behind the known fields, where a reader of protobuf takes them as well as anywhere. */
	unknown = unknown_of(f, r);
	if (unknown)
		err = byte_buffer_append(&f->payload, unknown->bytes, unknown->n);
	f->unknown.n = 0;
	return err ? err : frame_make(f, r, (uint8_t)r->head.kind, out);
}

int framer_item(struct framer *f, struct guest_record *r, struct frame_item *out)
{
	f->payload.len = 0;
	if (byte_buffer_reserve(&f->payload, 0)) /* an empty message is a message */
		return -ENOMEM;
	if (r->head.kind == RECORD_UNKNOWN_FRAME)
		return unknown_frame(f, r, out);
	if (r->head.kind > UINT8_MAX ||
	    !(frame_kind_senders((uint8_t)r->head.kind) & FRAME_BY_AGENT))
		return -EINVAL;
	return r->head.kind == FRAME_BATCH ? batch_item(f, r, out) : message_item(f, r, out);
}
