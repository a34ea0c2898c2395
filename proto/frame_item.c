// SPDX-License-Identifier: GPL-2.0-only
#include "proto/frame_item.h"

#include <errno.h>
#include <stdlib.h>

struct frame_maker {
	struct batch_encoder *encoder;
	struct frame_writer *writer;
	struct byte_buffer payload, frame;
};

struct frame_maker *frame_maker_new(void)
{
	struct frame_maker *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->encoder = batch_encoder_new();
	m->writer = frame_writer_new(0);
	if (!m->encoder || !m->writer) {
		frame_maker_free(m);
		return NULL;
	}
	batch_encoder_relay(m->encoder);
	return m;
}

void frame_maker_free(struct frame_maker *m)
{
	if (!m)
		return;
	batch_encoder_free(m->encoder);
	frame_writer_free(m->writer);
	byte_buffer_fini(&m->payload);
	byte_buffer_fini(&m->frame);
	free(m);
}

int frame_maker_frame(struct frame_maker *m, uint8_t kind, uint64_t session_id, uint32_t frame_seq,
		      const uint8_t *payload, size_t len, struct frame_view *out)
{
	int err;

	m->frame.len = 0;
	err = frame_write(m->writer, kind, payload, len, &m->frame);
	if (err)
		return err;
	frame_restamp(m->frame.data, session_id, frame_seq);
	out->bytes = m->frame.data;
	out->len = m->frame.len;
	return frame_header_parse(out->bytes, out->len, &out->header);
}

struct frame_item frame_item_of(const struct frame_view *frame)
{
	return (struct frame_item){.kind = frame->header.kind,
				   .session_id = frame->header.session_id,
				   .frame_seq = frame->header.frame_seq,
				   .frame = *frame};
}

int frame_item_frame(struct frame_item *item, struct frame_view *out)
{
	struct frame_maker *m = item->maker;
	int err = 0;

	if (!item->frame.len) {
		m->payload.len = 0;
		err = batch_encode(m->encoder, item->batch, &m->payload);
		if (!err && item->unknown_bytes)
			err = byte_buffer_append(&m->payload, item->unknown, item->unknown_bytes);
		if (!err)
			err = frame_maker_frame(m, FRAME_BATCH, item->session_id, item->frame_seq,
						m->payload.data, m->payload.len, &item->frame);
	}
	*out = item->frame;
	return err;
}
