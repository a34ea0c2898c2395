// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packs, unpacks and cleans messages by the rows of the catalogue. Both directions go through the
 * structs that protobuf-c made of wire.proto, which live in an arena. When unpacking, the arena's
 * limit depends on the size of the payload, so the memory that a message can use is proportional to
 * its size.
 */
#include "proto/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/arena.h"
#include "proto/text.h"

enum {
	/* The most protobuf-c takes per wire byte is for an empty sub-message: two bytes become
	 * a struct of up to 80, a pointer and two scan records. */
	WIRE_ARENA_PER_BYTE = 128,
	WIRE_ARENA_BASE_BYTES = 4096,
	WIRE_ARENA_MAX_BYTES = 4 * 1024 * 1024,
	PACK_ARENA_MAX_BYTES = 64 * 1024 * 1024, /* our own messages: their counts bound it */
};

#define ROWS(layout, f)                                                                            \
	const struct message_field *f = (layout)->fields, *end_ = f + (layout)->n_fields;          \
	f < end_;                                                                                  \
	f++

static uint64_t number_load(const void *at, uint32_t bytes, unsigned int flags)
{
	uint64_t u64;
	uint32_t u32;
	uint8_t u8;

	switch (bytes) {
	case sizeof(u8):
		memcpy(&u8, at, sizeof(u8));
		return flags & FIELD_SIGNED ? (uint64_t)(int8_t)u8 : u8;
	case sizeof(u32):
		memcpy(&u32, at, sizeof(u32));
		return flags & FIELD_SIGNED ? (uint64_t)(int32_t)u32 : u32;
	default:
		memcpy(&u64, at, sizeof(u64));
		return u64;
	}
}

static void number_store(void *at, uint32_t bytes, uint64_t value)
{
	const uint32_t u32 = (uint32_t)value;
	const uint8_t u8 = (uint8_t)value;

	if (bytes == sizeof(u8))
		memcpy(at, &u8, sizeof(u8));
	else
		memcpy(at, bytes == sizeof(u32) ? (const void *)&u32 : &value, bytes);
}

static bool bool_load(const void *at)
{
	return number_load(at, sizeof(bool), 0);
}

static size_t count_load(const void *m, const struct message_field *f)
{
	size_t n;

	memcpy(&n, (const char *)m + f->count_at, sizeof(n));
	return n;
}

static void count_store(void *m, const struct message_field *f, size_t n)
{
	memcpy((char *)m + f->count_at, &n, sizeof(n));
}

static void *pointer_load(const void *at)
{
	void *p;

	memcpy(&p, at, sizeof(p));
	return p;
}

static void pointer_store(void *at, const void *p)
{
	memcpy(at, &p, sizeof(p));
}

/* The elements of an array, wherever they are. */
static void *elements(const void *m, const struct message_field *f)
{
	char *at = (char *)m + f->at;

	return f->flags & FIELD_ALLOCATED ? pointer_load(at) : at;
}

/* ---- struct to wire ---- */

static int to_wire(struct arena *a, const struct message_layout *layout, const void *m, char *w);

static void *arena_get(struct arena *a, size_t bytes)
{
	return a->allocator.alloc(a->allocator.allocator_data, bytes);
}

/* Returns the part as the wire's struct; NULL: *err is set. */
static void *part_to_wire(struct arena *a, const struct message_layout *part, const void *m,
			  int *err)
{
	char *w = arena_get(a, part->wire->sizeof_message);

	*err = -ENOMEM;
	if (!w)
		return NULL;
	part->wire->message_init((ProtobufCMessage *)w);
	*err = to_wire(a, part, m, w);
	return *err ? NULL : w;
}

static int list_to_wire(struct arena *a, const struct message_field *f, const void *m, char *w)
{
	const size_t n = f->form == FIELD_NUMBERED ? f->limit : count_load(m, f);
	const char *element = elements(m, f);
	size_t used = 0;
	void **to;
	int err = 0;

	if (n > f->limit)
		return -E2BIG;
	to = arena_get(a, n * sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++, element += f->bytes) {
		if (f->form == FIELD_TEXTS) {
			to[used++] = (void *)element;
			continue;
		}
		if (f->form == FIELD_NUMBERED &&
		    !number_load(element + f->part->fields->at, f->part->fields->bytes, 0))
			continue;
		to[used] = part_to_wire(a, f->part, element, &err);
		if (!err && f->form == FIELD_NUMBERED)
			number_store((char *)to[used] + f->number_at, sizeof(uint32_t), i);
		used++;
	}
	memcpy(w + f->wire_count_at, &used, sizeof(used));
	pointer_store(w + f->wire_at, to);
	return err;
}

static int pairs_to_wire(struct arena *a, const struct message_field *f, const void *m, char *w)
{
	uint64_t *to = arena_get(a, 2 * f->limit * sizeof(*to));
	size_t used = 0;

	if (!to)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->limit; i++) {
		const uint64_t value = number_load((const char *)elements(m, f) + i * sizeof(value),
						   sizeof(value), 0);

		if (!value)
			continue;
		to[used++] = i;
		to[used++] = value;
	}
	memcpy(w + f->wire_count_at, &used, sizeof(used));
	pointer_store(w + f->wire_at, to);
	return 0;
}

static int field_to_wire(struct arena *a, const struct message_field *f, const void *m, char *w)
{
	const char *at = (const char *)m + f->at;
	int err = 0;

	switch (f->form) {
	case FIELD_NUMBER:
		number_store(w + f->wire_at, f->wire_bytes, number_load(at, f->bytes, f->flags));
		return 0;
	case FIELD_TEXT:
		pointer_store(w + f->wire_at, at);
		return 0;
	case FIELD_PART:
		if (!f->if_at || bool_load((const char *)m + f->if_at))
			pointer_store(w + f->wire_at, part_to_wire(a, f->part, at, &err));
		return err;
	case FIELD_NUMBERS:
		if (count_load(m, f) > f->limit)
			return -E2BIG;
		memcpy(w + f->wire_count_at, (const char *)m + f->count_at, sizeof(size_t));
		pointer_store(w + f->wire_at, elements(m, f));
		return 0;
	case FIELD_PAIRS:
		return pairs_to_wire(a, f, m, w);
	default:
		return list_to_wire(a, f, m, w);
	}
}

static int to_wire(struct arena *a, const struct message_layout *layout, const void *m, char *w)
{
	int err = 0;

	for (ROWS(layout, f)) {
		err = field_to_wire(a, f, m, w);
		if (err)
			break;
	}
	return err;
}

int message_pack(const struct message_layout *layout, const void *m, struct byte_buffer *out)
{
	const ProtobufCMessage *w;
	struct arena a;
	int err;

	arena_init(&a, PACK_ARENA_MAX_BYTES);
	w = part_to_wire(&a, layout, m, &err);
	if (!err)
		err = byte_buffer_reserve(out, protobuf_c_message_get_packed_size(w));
	if (!err)
		out->len += protobuf_c_message_pack(w, out->data + out->len);
	arena_fini(&a);
	return err;
}

/* ---- wire to struct ---- */

static int from_wire(const struct message_layout *layout, const char *w, void *m);

static bool is_within(const struct message_field *f, uint64_t value)
{
	if (f->flags & FIELD_SIGNED)
		return (int64_t)value >= (int64_t)f->least && (int64_t)value <= (int64_t)f->most;
	return value >= f->least && value <= f->most;
}

static int number_from_wire(const struct message_field *f, const char *w, char *m)
{
	const unsigned int is_signed = f->flags & FIELD_SIGNED;
	uint64_t value = number_load(w + f->wire_at, f->wire_bytes, is_signed);

	if (f->flags & FIELD_BOOL)
		value = value != 0;
	if (f->error && (!f->if_at || bool_load(m + f->if_at)) && !is_within(f, value))
		return f->error;
	number_store(m + f->at, f->bytes, value);
	return 0;
}

static int part_from_wire(const struct message_field *f, const char *w, char *m)
{
	const char *part = pointer_load(w + f->wire_at);

	if (!part) {
		/* An array at its end is empty: it may be large, and most messages have none. */
		const struct message_tail tail = message_tail(f->part);

		memset(m + f->at, 0, tail.bytes ? tail.at : f->bytes);
		return f->flags & FIELD_REQUIRED ? -EBADMSG : 0;
	}
	if (f->if_at)
		number_store(m + f->if_at, sizeof(bool), true);
	return from_wire(f->part, part, m + f->at);
}

static int list_from_wire(const struct message_field *f, const char *w, char *m)
{
	const void *const *from = pointer_load(w + f->wire_at);
	char *element;
	size_t n;
	int err = 0;

	memcpy(&n, w + f->wire_count_at, sizeof(n));
	if (n > f->limit)
		return -E2BIG;
	if (f->flags & FIELD_ALLOCATED && n) {
		pointer_store(m + f->at, calloc(n, f->bytes));
		if (!elements(m, f))
			return -ENOMEM;
	}
	count_store(m, f, n);
	element = elements(m, f);
	if (f->form == FIELD_NUMBERS && n)
		memcpy(element, from, n * f->bytes);
	for (size_t i = 0; i < n && f->form != FIELD_NUMBERS && !err; i++, element += f->bytes) {
		if (f->form == FIELD_TEXTS)
			text_copy(element, f->bytes, from[i]);
		else
			err = from_wire(f->part, from[i], element);
	}
	return err;
}

static int numbered_from_wire(const struct message_field *f, const char *w, char *m)
{
	const struct message_field *first = f->part->fields;
	const char *const *from = pointer_load(w + f->wire_at);
	size_t n;
	int err = 0;

	memset(m + f->at, 0, (size_t)f->limit * f->bytes);
	memcpy(&n, w + f->wire_count_at, sizeof(n));
	for (size_t i = 0; i < n && !err; i++) {
		const uint64_t number = number_load(from[i] + f->number_at, sizeof(uint32_t), 0);

		if (number < f->limit &&
		    number_load(from[i] + first->wire_at, first->wire_bytes, 0))
			err = from_wire(f->part, from[i], m + f->at + number * f->bytes);
	}
	return err;
}

static int pairs_from_wire(const struct message_field *f, const char *w, char *m)
{
	const uint64_t *from = pointer_load(w + f->wire_at);
	size_t n;

	memset(m + f->at, 0, (size_t)f->limit * f->bytes);
	memcpy(&n, w + f->wire_count_at, sizeof(n));
	if (n % 2)
		return -EBADMSG;
	for (size_t i = 0; i < n; i += 2) {
		if (from[i] >= f->limit)
			return -EBADMSG;
		number_store(m + f->at + from[i] * f->bytes, f->bytes, from[i + 1]);
	}
	return 0;
}

static int field_from_wire(const struct message_field *f, const char *w, char *m)
{
	switch (f->form) {
	case FIELD_NUMBER:
		return number_from_wire(f, w, m);
	case FIELD_TEXT:
		text_copy(m + f->at, f->bytes, pointer_load(w + f->wire_at));
		return 0;
	case FIELD_PART:
		return part_from_wire(f, w, m);
	case FIELD_NUMBERED:
		return numbered_from_wire(f, w, m);
	case FIELD_PAIRS:
		return pairs_from_wire(f, w, m);
	default:
		return list_from_wire(f, w, m);
	}
}

static bool is_in_order(const struct message_field *f, const char *m)
{
	return !f->not_above_at ||
	       number_load(m + f->at, f->bytes, 0) <= number_load(m + f->not_above_at, f->bytes, 0);
}

static int from_wire(const struct message_layout *layout, const char *w, void *m)
{
	int err = 0;

	for (ROWS(layout, f)) {
		err = field_from_wire(f, w, m);
		if (err)
			return err;
	}
	for (ROWS(layout, f)) {
		if (!is_in_order(f, m))
			return -EBADMSG;
	}
	return layout->valid && !layout->valid(m) ? -EBADMSG : 0;
}

/* Empties the allocated arrays: nobody has to free them after an error. */
static void allocated_init(const struct message_layout *layout, void *m, bool release)
{
	for (ROWS(layout, f)) {
		if (!(f->flags & FIELD_ALLOCATED))
			continue;
		if (release)
			free(elements(m, f));
		pointer_store((char *)m + f->at, NULL);
		count_store(m, f, 0);
	}
}

int message_unpack(const struct message_layout *layout, const uint8_t *payload, size_t len, void *m)
{
	size_t limit = WIRE_ARENA_MAX_BYTES;
	ProtobufCMessage *w;
	struct arena a;
	int err;

	if (len < WIRE_ARENA_MAX_BYTES / WIRE_ARENA_PER_BYTE - WIRE_ARENA_BASE_BYTES)
		limit = WIRE_ARENA_BASE_BYTES + len * WIRE_ARENA_PER_BYTE;
	arena_init(&a, limit);
	allocated_init(layout, m, false);
	err = arena_unpack(&a, layout->wire, payload, len, &w);
	if (!err)
		err = from_wire(layout, (const char *)w, m);
	if (err)
		allocated_init(layout, m, true);
	arena_fini(&a);
	return err;
}

/* ---- a struct of foreign memory ---- */

/* A bool of foreign memory may hold any byte; reading it as a bool would be undefined. */
static void bool_clean(char *at)
{
	number_store(at, sizeof(bool), bool_load(at));
}

static int array_clean(const struct message_field *f, char *m)
{
	char *element = m + f->at;
	int err = 0;

	if (f->flags & FIELD_ALLOCATED || count_load(m, f) > f->limit)
		return -EPROTO;
	if (f->form == FIELD_TEXTS) { /* all, as they lie before the array that may be cut */
		for (size_t i = 0; i < f->limit; i++, element += f->bytes)
			element[f->bytes - 1] = 0;
	}
	if (f->form == FIELD_LIST) {
		for (size_t i = 0; i < count_load(m, f) && !err; i++, element += f->bytes)
			err = message_clean(f->part, element);
	}
	return err;
}

int message_clean(const struct message_layout *layout, void *message)
{
	char *m = message;
	int err = 0;

	for (ROWS(layout, f)) {
		switch (f->form) {
		case FIELD_NUMBER:
			if (f->flags & FIELD_BOOL)
				bool_clean(m + f->at);
			break;
		case FIELD_TEXT:
			m[f->at + f->bytes - 1] = 0;
			break;
		case FIELD_PART:
			if (f->if_at)
				bool_clean(m + f->if_at);
			err = message_clean(f->part, m + f->at);
			break;
		case FIELD_NUMBERED:
			for (uint32_t i = 0; i < f->limit && !err; i++)
				err = message_clean(f->part, m + f->at + i * f->bytes);
			break;
		case FIELD_PAIRS:
			break;
		default:
			err = array_clean(f, m);
		}
		if (err)
			return err;
	}
	return 0;
}

struct message_tail message_tail(const struct message_layout *layout)
{
	const struct message_field *last = NULL;
	struct message_tail tail = {.at = layout->bytes};

	for (ROWS(layout, f)) {
		if (!last || f->at > last->at)
			last = f;
	}
	if (!last || last->flags & FIELD_ALLOCATED)
		return tail;
	if (last->form == FIELD_PART && message_tail(last->part).bytes) {
		tail = message_tail(last->part);
		tail.at += last->at;
		tail.count_at += last->at;
	}
	if (last->form == FIELD_LIST)
		tail = (struct message_tail){last->at, last->bytes, last->limit, last->count_at};
	return tail;
}
