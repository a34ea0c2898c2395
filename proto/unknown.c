// SPDX-License-Identifier: GPL-2.0-only
#include "proto/unknown.h"

#include <errno.h>
#include <string.h>

#include "proto/frame_kinds.h"
#include "proto/message_fields.h"
#include "proto/wire_field.h"

/* What is written; `full` once something did not fit. */
struct sink {
	uint8_t *out;
	size_t used, limit;
	bool full;
};

static void put(struct sink *s, const uint8_t *bytes, size_t n)
{
	if (n > s->limit - s->used) {
		s->full = true;
		return;
	}
	memcpy(s->out + s->used, bytes, n);
	s->used += n;
}

static int message_walk(const ProtobufCMessageDescriptor *type, struct wire_cursor c,
			struct sink *s)
{
	while (c.at < c.end) {
		const uint8_t *const begin = c.at;
		struct wire_field field;

		if (!wire_field_next(&c, &field) || field.number > UINT32_MAX >> 3)
			return -EBADMSG;
		if (!protobuf_c_message_descriptor_get_field(type, field.number))
			put(s, begin, (size_t)(c.at - begin));
	}
	return 0;
}

long unknown_extract(uint8_t kind, const uint8_t *payload, size_t len, uint8_t *out,
		     size_t out_bytes)
{
	const struct frame_kind_row *row = frame_kind_row(kind);
	struct sink s = {.out = out, .limit = out_bytes};
	int err;

	if (!(row->senders & FRAME_BY_AGENT) || !len)
		return 0;
	err = message_walk(row->message->wire, (struct wire_cursor){payload, payload + len}, &s);
	if (!err && s.full)
		err = -E2BIG;
	return err ? err : (long)s.used;
}

bool unknown_check(uint8_t kind, const uint8_t *bytes, size_t len)
{
	uint8_t again[VS_UNKNOWN_MAX];
	const long n = unknown_extract(kind, bytes, len, again, sizeof(again));

	return n > 0 && (size_t)n == len && !memcmp(again, bytes, len);
}
