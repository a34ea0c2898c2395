// SPDX-License-Identifier: GPL-2.0-only
#include "proto/wire_field.h"

enum {
	VARINT_MAX_BYTES = 10,
	TAG_MAX_BYTES = 5,
	LENGTH_MAX_BYTES = 5,
};

static bool varint_read(struct wire_cursor *c, int max_bytes, uint64_t *out)
{
	*out = 0;
	for (int i = 0; i < max_bytes && c->at < c->end; i++) {
		const uint8_t byte = *c->at++;

		*out |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

bool wire_field_next(struct wire_cursor *c, struct wire_field *out)
{
	uint64_t tag, n;

	if (!varint_read(c, TAG_MAX_BYTES, &tag) || !(tag >> 3))
		return false;
	*out = (struct wire_field){.number = (uint32_t)(tag >> 3), .type = tag & 7};
	switch (out->type) {
	case WIRE_VARINT:
		return varint_read(c, VARINT_MAX_BYTES, &out->value);
	case WIRE_FIXED64:
		n = 8;
		break;
	case WIRE_FIXED32:
		n = 4;
		break;
	case WIRE_BYTES:
		if (!varint_read(c, LENGTH_MAX_BYTES, &n))
			return false;
		break;
	default:
		return false;
	}
	if (n > (uint64_t)(c->end - c->at))
		return false;
	out->bytes = (struct wire_cursor){c->at, c->at + n};
	c->at += n;
	return true;
}
