/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads and writes the fields of a protobuf message one by one, without a schema, and allocates no
 * memory. Refuses what protobuf-c refuses: a cut field, a tag or length of more than 5 bytes, a
 * varint of more than 10 bytes, the number 0, groups.
 */
#ifndef PROTO_WIRE_FIELD_H
#define PROTO_WIRE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
};

/* The bytes that are left. */
struct wire_cursor {
	const uint8_t *at, *end;
};

struct wire_field {
	uint32_t number; /* not 0 */
	enum wire_type type;
	uint64_t value;           /* WIRE_VARINT */
	struct wire_cursor bytes; /* the other types: the content, borrowed from the message */
};

/* Takes the next field. Call it while c->at < c->end. Returns false if the field is malformed; the
 * cursor is then undefined. */
bool wire_field_next(struct wire_cursor *c, struct wire_field *out);

/* Returns how many bytes the varint of `value` has: 1 to 10. */
static inline size_t wire_varint_bytes(uint64_t value)
{
	return ((size_t)(63 - __builtin_clzll(value | 1)) * 9 + 73) / 64;
}

/* Writes a varint and returns the end of it. There must be room for 2 bytes even if it has one. */
static inline uint8_t *wire_varint_put(uint8_t *at, uint64_t value)
{
	if (value < 1 << 14) { /* most values; which of the two lengths cannot be predicted */
		const unsigned int two = value >= 1 << 7;

		at[0] = (uint8_t)(value | two << 7);
		at[1] = (uint8_t)(value >> 7);
		return at + 1 + two;
	}
	for (; value >= 1 << 7; value >>= 7)
		*at++ = (uint8_t)(value | 1 << 7);
	*at++ = (uint8_t)value;
	return at;
}

#endif
