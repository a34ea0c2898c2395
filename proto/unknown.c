// SPDX-License-Identifier: GPL-2.0-only
#include "proto/unknown.h"

#include <errno.h>
#include <string.h>

#include "proto/frame_kinds.h"
#include "proto/message_fields.h"

enum {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
	VARINT_MAX_BYTES = 10,
};

struct cursor {
	const uint8_t *at, *end;
};

/* What is written; `full` once something did not fit. */
struct sink {
	uint8_t *out;
	size_t used, limit;
	bool full;
};

static bool varint_read(struct cursor *c, uint64_t *out)
{
	*out = 0;
	for (int i = 0; i < VARINT_MAX_BYTES && c->at < c->end; i++) {
		const uint8_t byte = *c->at++;

		*out |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* The field's value, of the tag's wire type: moves `c` behind it. */
static bool value_skip(struct cursor *c, uint64_t tag)
{
	uint64_t n;

	switch (tag & 7) {
	case WIRE_VARINT:
		return varint_read(c, &n);
	case WIRE_FIXED64:
		n = 8;
		break;
	case WIRE_FIXED32:
		n = 4;
		break;
	case WIRE_BYTES:
		if (!varint_read(c, &n))
			return false;
		break;
	default:
		return false;
	}
	if (n > (uint64_t)(c->end - c->at))
		return false;
	c->at += n;
	return true;
}

static void put(struct sink *s, const uint8_t *bytes, size_t n)
{
	if (n > s->limit - s->used) {
		s->full = true;
		return;
	}
	memcpy(s->out + s->used, bytes, n);
	s->used += n;
}

static int message_walk(const ProtobufCMessageDescriptor *type, struct cursor c, struct sink *s)
{
	while (c.at < c.end) {
		const uint8_t *const begin = c.at;
		uint64_t tag;

		if (!varint_read(&c, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3 ||
		    !value_skip(&c, tag))
			return -EBADMSG;
		if (!protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3)))
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
	err = message_walk(row->message->wire, (struct cursor){payload, payload + len}, &s);
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
