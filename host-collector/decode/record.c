/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/record.h"

#include <errno.h>
#include <string.h>

/* An own kind of the decoder: a struct without an array. */
#define WHOLE(field)                                                                               \
	(struct message_tail)                                                                      \
	{                                                                                          \
		.at = offsetof(struct guest_record, field) +                                       \
		      sizeof(((struct guest_record *)0)->field)                                    \
	}
/* One that ends in an array. */
#define ENDS_IN(array, count)                                                                      \
	(struct message_tail)                                                                      \
	{                                                                                          \
		.at = offsetof(struct guest_record, array),                                        \
		.bytes = sizeof(((struct guest_record *)0)->array[0]),                             \
		.limit = sizeof(((struct guest_record *)0)->array) /                               \
			 sizeof(((struct guest_record *)0)->array[0]),                             \
		.count_at = offsetof(struct guest_record, count)                                   \
	}

/* Returns the layout of the kind's message. Returns NULL if no decoder sends this kind, or if the
 * kind has no message. */
static const struct message_layout *message_of(uint16_t kind)
{
	const struct frame_kind_row *row = frame_kind_row(kind > UINT8_MAX ? 0 : (uint8_t)kind);

	if (!(row->senders & FRAME_BY_AGENT) && kind != RECORD_OBSERVATION && kind != RECORD_NOTE)
		return NULL;
	return row->message->bytes ? row->message : NULL;
}

/* Sets *out to the array at the end of a record, or to the size of one without (bytes 0). Returns
 * false for an invalid kind. */
static bool record_tail(uint16_t kind, struct message_tail *out)
{
	const struct message_layout *message = message_of(kind);

	switch (kind) {
	case FRAME_BATCH:
		*out = ENDS_IN(batch.events, batch.n_events);
		return true;
	case RECORD_STATS:
		*out = WHOLE(stats);
		return true;
	case RECORD_DOWN:
		*out = WHOLE(down);
		return true;
	case RECORD_UNKNOWN:
		*out = ENDS_IN(unknown.bytes, unknown.n);
		return true;
	case RECORD_UNKNOWN_FRAME:
		*out = WHOLE(unknown_frame);
		return true;
	default:
		if (!message)
			return false;
		*out = message_tail(message);
		out->at += offsetof(struct guest_record, hello);
		out->count_at += offsetof(struct guest_record, hello);
		return true;
	}
}

static size_t members_of(const struct guest_record *r, const struct message_tail *tail)
{
	size_t n = 0;

	if (tail->bytes)
		memcpy(&n, (const char *)r + tail->count_at, sizeof(n));
	return n;
}

size_t record_bytes(const struct guest_record *r)
{
	struct message_tail tail;

	if (!record_tail(r->head.kind, &tail))
		return sizeof(r->head);
	return tail.at + tail.bytes * members_of(r, &tail);
}

/* A bool of foreign memory may hold any byte; reading it as a bool would be undefined. */
static void bool_clean(bool *b)
{
	uint8_t byte;

	memcpy(&byte, b, 1);
	*b = byte != 0;
}

int record_check(struct guest_record *r, size_t bytes)
{
	const struct message_layout *message;
	struct message_tail tail;
	size_t members;

	if (bytes < sizeof(r->head) || !record_tail(r->head.kind, &tail) || bytes < tail.at)
		return -EPROTO;
	members = members_of(r, &tail);
	if (members > tail.limit || bytes != tail.at + members * tail.bytes)
		return -EPROTO;
	if (r->head.kind == FRAME_BATCH && r->batch.cpu >= VS_CPUS_MAX)
		return -EPROTO;
	if (r->head.kind == RECORD_STATS) {
		bool_clean(&r->stats.session.hello_known);
		bool_clean(&r->stats.session.refusing);
	}
	message = message_of(r->head.kind);
	return message ? message_clean(message, record_message(r)) : 0;
}
