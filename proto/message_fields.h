/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The catalogue of messages: one row per field, with its member in the struct (message.h), its
 * member on the wire (wire.proto), its bound and what makes it safe. message.c packs, unpacks and
 * cleans all messages by these rows. The rows are in message_fields.c.
 */
#ifndef PROTO_MESSAGE_FIELDS_H
#define PROTO_MESSAGE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "proto/frame_kinds.h"

enum field_form {
	FIELD_NUMBER,  /* an integer, an enum or a bool */
	FIELD_TEXT,    /* char[bytes]; unpacking makes it valid UTF-8 and cuts it */
	FIELD_PART,    /* a struct; the fields are those of `part` */
	FIELD_LIST,    /* an array of structs, of which the first *count_at are used */
	FIELD_NUMBERS, /* an array of integers, of the same type on the wire */
	FIELD_TEXTS,   /* an array of texts */
	/* An array of structs by number. The wire has a number and a struct for each whose first
	 * field is not 0. Numbers from `limit` on are skipped: a newer peer sends them. */
	FIELD_NUMBERED,
	/* An array of uint64_t by number. The wire has pairs of a number and a value for all that
	 * are not 0. A number from `limit` on is refused. */
	FIELD_PAIRS,
};

enum field_flag {
	FIELD_SIGNED = 1,
	FIELD_BOOL = 2,
	FIELD_REQUIRED = 4,  /* a part: a message without it is refused (-EBADMSG) */
	FIELD_ALLOCATED = 8, /* a list: the member is a pointer; unpacking allocates the array */
};

struct message_layout;

struct message_field {
	const char *name; /* "struct.member" */
	enum field_form form;
	unsigned int flags;   /* enum field_flag */
	uint32_t at, bytes;   /* offset in the struct; size of the member or of one array element */
	uint32_t wire_at;     /* offset in the struct that protobuf-c made of wire.proto */
	uint32_t wire_bytes;  /* a number: size of that member */
	uint64_t least, most; /* a number: its valid range; as int64_t if signed */
	int error; /* a number outside its range is refused with this error; 0: all are valid */
	/* A number: offset of a bool of an earlier row; while it is false, the bound does not
	 * apply. A part: offset of its `known`; while it is false the wire does not have the part.
	 * 0: none */
	uint32_t if_at;
	uint32_t not_above_at; /* a number: offset of one that must not be smaller (-EBADMSG) */
	/* An array: offsets of the counts, and the number of elements. */
	uint32_t count_at, wire_count_at, limit;
	uint32_t number_at; /* FIELD_NUMBERED: offset of the number in the wire's struct */
	const struct message_layout *part;
};

struct message_layout {
	const ProtobufCMessageDescriptor *wire;
	uint32_t bytes; /* of the struct; 0: no struct, packed elsewhere (Batch, codec.h) */
	size_t n_fields;
	const struct message_field *fields;
	/* Rules that no row can express. Returns false for a message to refuse (-EBADMSG). */
	bool (*valid)(const void *m);
};

#define X(message) extern const struct message_layout message_##message##_layout;
VS_MESSAGES(X)
X(batch)
#undef X

#endif
