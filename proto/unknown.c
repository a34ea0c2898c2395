// SPDX-License-Identifier: GPL-2.0-only
#include "proto/unknown.h"

#include <errno.h>
#include <string.h>

#include "proto/frame.h"
#include "wire.pb-c.h"

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

static const ProtobufCMessageDescriptor *const kinds[] = {
	[FRAME_HELLO] = &vcpuscope__wire__hello__descriptor,
	[FRAME_BATCH] = &vcpuscope__wire__batch__descriptor,
	[FRAME_HEARTBEAT] = &vcpuscope__wire__heartbeat__descriptor,
	[FRAME_ECHO_REPLY] = &vcpuscope__wire__echo_reply__descriptor,
	[FRAME_CLOCK_SAMPLE] = &vcpuscope__wire__clock_sample__descriptor,
	[FRAME_KERNEL_LOG] = &vcpuscope__wire__kernel_log__descriptor,
	[FRAME_GUEST_STACK] = &vcpuscope__wire__stack__descriptor,
	[FRAME_CONFIG_REPLY] = &vcpuscope__wire__config_reply__descriptor,
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
	struct sink s = {.out = out, .limit = out_bytes};
	int err;

	if (kind >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[kind] || !len)
		return 0;
	err = message_walk(kinds[kind], (struct cursor){payload, payload + len}, &s);
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
