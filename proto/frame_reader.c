// SPDX-License-Identifier: GPL-2.0-only
/*
 * Searches for frames in a stream. After damage, the search tries each byte as the begin of a
 * frame. A hostile peer could send many valid headers that each announce the largest payload, and
 * so make the reader check each byte thousands of times. Each repeated check therefore uses a
 * credit that grows with the received bytes. Without credit, the reader skips a damaged frame as a
 * whole.
 */
#include "proto/frame.h"

#include <errno.h>
#include <string.h>

enum {
	RESCAN_CREDIT_PER_BYTE = 4,
	RESCAN_CREDIT_MAX = 4 * (VS_FRAME_HEADER_BYTES + VS_FRAME_PAYLOAD_MAX),
};

void frame_reader_init(struct frame_reader *r)
{
	*r = (struct frame_reader){.rescan_credit = RESCAN_CREDIT_MAX};
}

void frame_reader_fini(struct frame_reader *r)
{
	byte_buffer_fini(&r->pending);
	frame_reader_init(r);
}

int frame_reader_push(struct frame_reader *r, const uint8_t *data, size_t len)
{
	byte_buffer_consume(&r->pending, r->consumed);
	r->consumed = 0;
	if (len >= (RESCAN_CREDIT_MAX - r->rescan_credit) / RESCAN_CREDIT_PER_BYTE)
		r->rescan_credit = RESCAN_CREDIT_MAX;
	else
		r->rescan_credit += len * RESCAN_CREDIT_PER_BYTE;
	return byte_buffer_append(&r->pending, data, len);
}

static void reader_skip(struct frame_reader *r, size_t n)
{
	r->consumed += n;
	r->stats.skipped_bytes += n;
	r->out_of_sync = true;
}

/* From an offset of 1 or more to where a frame could begin next, or to the end. */
static size_t reader_find(const uint8_t *p, size_t len, size_t from)
{
	const uint8_t *at;

	while (from < len) {
		struct frame_header ignored;

		at = memchr(p + from, 'V', len - from);
		if (!at)
			return len;
		from = (size_t)(at - p);
		if (frame_header_parse(at, len - from, &ignored) != -EBADMSG)
			return from;
		from++;
	}
	return len;
}

static void reader_reject(struct frame_reader *r, int err, const struct frame_view *frame)
{
	const uint8_t *p = r->pending.data + r->consumed;
	size_t len = r->pending.len - r->consumed, skip = 0;

	switch (err) {
	case -EILSEQ:
		r->stats.bad_crc++;
		break;
	case -E2BIG:
		r->stats.bad_length++;
		break;
	case -EPROTONOSUPPORT:
		r->stats.bad_version++;
		break;
	}
	if (frame->len) { /* the header was good, the payload not */
		if (frame->len > r->rescan_credit)
			skip = frame->len;
		else
			r->rescan_credit -= frame->len;
	}
	reader_skip(r, skip ? skip : reader_find(p, len, 1));
}

int frame_reader_next(struct frame_reader *r, struct frame_view *frame)
{
	while (r->consumed < r->pending.len) {
		int err;

		*frame = (struct frame_view){0};
		err = frame_parse(r->pending.data + r->consumed, r->pending.len - r->consumed,
				  frame);
		if (err == -EAGAIN)
			return 0;
		if (err) {
			reader_reject(r, err, frame);
			continue;
		}
		r->consumed += frame->len;
		r->stats.frames++;
		if (r->out_of_sync)
			r->stats.resyncs++;
		r->out_of_sync = false;
		return 1;
	}
	return 0;
}

bool frame_reader_is_partial(const struct frame_reader *r)
{
	return r->consumed < r->pending.len;
}

void frame_reader_abandon(struct frame_reader *r)
{
	const uint8_t *p = r->pending.data + r->consumed;
	size_t len = r->pending.len - r->consumed;

	if (!len)
		return;
	r->stats.abandoned++;
	reader_skip(r, reader_find(p, len, 1));
}
