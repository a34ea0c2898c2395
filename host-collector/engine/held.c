/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Live, a guest's batches and heartbeats are held until the next round trip of that guest, or for
 * HOLD_MS. So their times are interpolated between round trips and converted with the right epoch:
 * the channel keeps the order, so frames that arrive before an echo's reply were sent before it.
 */
#include <errno.h>
#include <string.h>

#include "host-collector/engine/internal.h"

enum {
	HOLD_BYTES = 8 << 20,
	/* alignment of what stream.held contains, because events are read in place */
	HELD_ALIGN = 8,
};

/* Before each held content in stream.held: the bytes of a frame or the events of a batch. */
struct held_content {
	uint64_t arrival_tsc;
	struct content content;
	struct batch batch;
	bool is_batch;
	uint64_t len;
};

/* Takes the result of a frame. -ENOMEM is our own error; any other is the sender's and counted. */
static int blame(struct stream *s, int err)
{
	if (err && err != -ENOMEM) {
		s->malformed++;
		err = 0;
	}
	return err;
}

int content_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc,
		 const struct content *c)
{
	const uint8_t *payload;
	struct batch batch;
	size_t len;
	int err;

	s->session_id = c->session_id;
	s->boot = boots_of(&s->continuity.boots, s->session_id, s->boot);
	s->learn_boot = boots_of(&s->learn_boots, s->session_id, s->learn_boot);
	if (c->batch) {
		batch = *c->batch;
		return blame(s, batch_events_take(p, s, arrival_tsc, &batch));
	}
	err = frame_unpack(p->unpacker, &c->frame, &payload, &len);
	if (!err)
		err = message_take(p, s, c->kind, arrival_tsc, payload, len);
	return blame(s, err);
}

static size_t padded(size_t bytes)
{
	return (bytes + HELD_ALIGN - 1) / HELD_ALIGN * HELD_ALIGN;
}

int held_release(struct pipeline *p, struct stream *s)
{
	size_t at = 0;
	int err = 0;

	while (at < s->held.len && !err) {
		struct held_content h;

		memcpy(&h, s->held.data + at, sizeof(h));
		at += sizeof(h);
		h.batch.events = (struct vs_event *)(void *)(s->held.data + at);
		h.content.batch = h.is_batch ? &h.batch : NULL;
		h.content.frame.bytes = s->held.data + at;
		at += padded(h.len);
		err = content_take(p, s, h.arrival_tsc, &h.content);
	}
	s->held.len = 0;
	return err;
}

int held_add(struct pipeline *p, struct stream *s, uint64_t arrival_tsc, const struct content *c)
{
	struct held_content h = {.arrival_tsc = arrival_tsc,
				 .content = *c,
				 .is_batch = c->batch,
				 .len = c->frame.len};
	const void *bytes = c->frame.bytes;
	int err;

	if (c->batch) {
		h.batch = *c->batch;
		h.len = c->batch->n_events * sizeof(*c->batch->events);
		bytes = c->batch->events;
	}
	if (s->held.len + h.len > HOLD_BYTES) {
		err = held_release(p, s);
		if (err)
			return err;
	}
	err = byte_buffer_reserve(&s->held, sizeof(h) + padded(h.len));
	if (err)
		return err;
	if (!s->held.len)
		s->held_since_tsc = arrival_tsc;
	memcpy(s->held.data + s->held.len, &h, sizeof(h));
	if (h.len)
		memcpy(s->held.data + s->held.len + sizeof(h), bytes, h.len);
	s->held.len += sizeof(h) + padded(h.len);
	return 0;
}

bool held_is_due(const struct pipeline *p, const struct stream *s, uint64_t now_tsc)
{
	return s->held.len && p->hold_ticks && now_tsc > s->held_since_tsc &&
	       now_tsc - s->held_since_tsc > p->hold_ticks;
}
