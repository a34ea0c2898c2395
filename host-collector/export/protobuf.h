/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes protobuf's wire format field by field, for a schema of which only the field numbers are
 * known (perfetto_fields.h). Running out of memory sets `error`, so that callers need not check
 * each field.
 */
#ifndef EXPORT_PROTOBUF_H
#define EXPORT_PROTOBUF_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "proto/buffer.h"

struct protobuf {
	struct byte_buffer bytes;
	int error; /* -ENOMEM: something is missing */
};

enum { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2 };

static inline uint8_t *protobuf_room(struct protobuf *p, size_t n)
{
	if (p->bytes.capacity - p->bytes.len < n || !p->bytes.data) {
		p->error = byte_buffer_reserve(&p->bytes, n);
		if (p->error)
			return NULL;
	}
	return p->bytes.data + p->bytes.len;
}

/* Most bytes that protobuf_put_varint() writes, also if the varint itself is shorter. */
enum { PROTOBUF_VARINT_ROOM = 10 };

/* Puts 7 of the lowest 56 bits into each byte. */
static inline uint64_t protobuf_sevens(uint64_t v)
{
	v = (v & 0x000000000fffffffull) | (v & 0x00fffffff0000000ull) << 4;
	v = (v & 0x00003fff00003fffull) | (v & 0x0fffc0000fffc000ull) << 2;
	return (v & 0x007f007f007f007full) | (v & 0x3f803f803f803f80ull) << 1;
}

/* Writes a varint. Returns the place behind it. */
static inline uint8_t *protobuf_put_varint(uint8_t *at, uint64_t v)
{
	unsigned bytes;

	if (v < 0x80) {
		*at++ = (uint8_t)v;
		return at;
	}
	for (; v >> 56; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	bytes = (70u - (unsigned)__builtin_clzll(v)) / 7;
	v = protobuf_sevens(v) | (0x8080808080808080ull & ((1ull << 8 * (bytes - 1)) - 1));
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
	return at + bytes;
}

/* Writes a field of a number. Returns the place behind it. */
static inline uint8_t *protobuf_put_uint(uint8_t *at, uint32_t field, uint64_t v)
{
	return protobuf_put_varint(protobuf_put_varint(at, field << 3 | PROTOBUF_VARINT), v);
}

/* Appends a varint without a tag, for example an element of a packed field. */
static inline void protobuf_varint(struct protobuf *p, uint64_t v)
{
	uint8_t *at = protobuf_room(p, PROTOBUF_VARINT_ROOM);

	if (at)
		p->bytes.len = (size_t)(protobuf_put_varint(at, v) - p->bytes.data);
}

static inline void protobuf_uint(struct protobuf *p, uint32_t field, uint64_t v)
{
	uint8_t *at = protobuf_room(p, 15);

	if (!at)
		return;
	p->bytes.len = (size_t)(protobuf_put_uint(at, field, v) - p->bytes.data);
}

static inline void protobuf_fixed64(struct protobuf *p, uint32_t field, uint64_t v)
{
	uint8_t *at = protobuf_room(p, 13);

	if (!at)
		return;
	at = protobuf_put_varint(at, field << 3 | PROTOBUF_FIXED64);
	for (int i = 0; i < 8; i++)
		*at++ = (uint8_t)(v >> 8 * i);
	p->bytes.len = (size_t)(at - p->bytes.data);
}

/* Append a field with these bytes, or with this text without its NUL. */
void protobuf_bytes(struct protobuf *p, uint32_t field, const void *data, size_t len);
void protobuf_text(struct protobuf *p, uint32_t field, const char *text);

/* Writes the begin of a message whose length protobuf_close() fills in. Returns the place of its
 * content. */
static inline uint8_t *protobuf_put_open(uint8_t *at, uint32_t field)
{
	at = protobuf_put_varint(at, field << 3 | PROTOBUF_BYTES);
	*at++ = 0; /* room for the length of a short message; a longer one is moved */
	return at;
}

/* Opens a message (or a packed field) inside another. What is written until protobuf_close()
 * belongs to it. Returns the argument `opened` of protobuf_close(). */
static inline size_t protobuf_open(struct protobuf *p, uint32_t field)
{
	uint8_t *at = protobuf_room(p, PROTOBUF_VARINT_ROOM + 1);

	if (!at)
		return 0;
	p->bytes.len = (size_t)(protobuf_put_open(at, field) - p->bytes.data);
	return p->bytes.len;
}

/* Closes a message of 128 bytes or more: moves it to make room for its length. */
void protobuf_close_long(struct protobuf *p, size_t opened);

static inline void protobuf_close(struct protobuf *p, size_t opened)
{
	if (p->error)
		return;
	if (p->bytes.len - opened < 0x80)
		p->bytes.data[opened - 1] = (uint8_t)(p->bytes.len - opened);
	else
		protobuf_close_long(p, opened);
}

#endif
