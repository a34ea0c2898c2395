// SPDX-License-Identifier: GPL-2.0-only
#include "mutate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "proto/codec.h"

enum { ENTRIES_MAX = 20000, SOURCES = 300, DEPTH_MAX = 3 };

/* Values near the edges of what the readers compute with. */
static const uint64_t extremes[] = {
	0,
	1,
	255,
	(1ull << 31) - 1,
	1ull << 31,
	1ull << 32,
	1ull << 45,
	(1ull << 53) - 1,
	1ull << 53,
	1ull << 54,
	1ull << 57,
	1ull << 60,
	1ull << 61,
	1ull << 62,
	(1ull << 63) - 1,
	1ull << 63,
	(1ull << 63) + 1,
	UINT64_MAX - (1ull << 32),
	UINT64_MAX - 1,
	UINT64_MAX,
};

/* One operation: what, on which entries, and with which values. */
struct op {
	uint8_t what, field, value, scale;
	uint16_t first, n;
};

static uint64_t op_value(const struct op *op)
{
	return extremes[op->value % (sizeof(extremes) / sizeof(extremes[0]))];
}

/* One of several ways in which a time may be wrong. */
static uint64_t time_change(uint64_t t, const struct op *op)
{
	switch (op->scale % 6) {
	case 0:
		return t * 2;
	case 1:
		return t << (op->value % 40);
	case 2:
		return t + op_value(op);
	case 3:
		return t - op_value(op);
	case 4:
		return t / (op->value + 1u);
	default:
		return op_value(op);
	}
}

/* ---- protobuf: any number in a message, at any depth ---- */

static size_t varint_put(uint8_t *out, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		out[n++] = (uint8_t)(value | 0x80);
	out[n++] = (uint8_t)value;
	return n;
}

static bool varint_get(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	*out = 0;
	for (unsigned int shift = 0; shift < 64 && *at < end; shift += 7) {
		const uint8_t byte = *(*at)++;

		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static void append(struct byte_buffer *b, const void *data, size_t n)
{
	FUZZ_CHECK(!byte_buffer_append(b, data, n));
}

static void append_varint(struct byte_buffer *b, uint64_t value)
{
	uint8_t bytes[10];

	append(b, bytes, varint_put(bytes, value));
}

/*
 * Copies a message and changes its number `*left` (counted through all depths). Returns false if
 * the bytes are no message; then `out` is as before.
 */
static bool message_change(const uint8_t *at, size_t len, int depth, int *left, const struct op *op,
			   struct byte_buffer *out)
{
	const size_t begin = out->len;
	const uint8_t *end = at + len;

	while (at < end) {
		struct byte_buffer inner = {0};
		uint64_t tag, value;

		if (!varint_get(&at, end, &tag) || tag >> 3 == 0 || tag >> 3 > 64)
			goto no_message;
		append_varint(out, tag);
		switch (tag & 7) {
		case 0:
			if (!varint_get(&at, end, &value))
				goto no_message;
			if (!(*left)--)
				value = time_change(value, op);
			append_varint(out, value);
			break;
		case 1:
			if (end - at < 8)
				goto no_message;
			memcpy(&value, at, 8);
			at += 8;
			if (!(*left)--)
				value = time_change(value, op);
			append(out, &value, 8);
			break;
		case 2:
			if (!varint_get(&at, end, &value) || value > (uint64_t)(end - at))
				goto no_message;
			if (depth < DEPTH_MAX && value &&
			    message_change(at, (size_t)value, depth + 1, left, op, &inner)) {
				append_varint(out, inner.len);
				append(out, inner.data, inner.len);
			} else {
				append_varint(out, value);
				append(out, at, (size_t)value);
			}
			byte_buffer_fini(&inner);
			at += value;
			break;
		default:
			goto no_message;
		}
	}
	return true;
no_message:
	out->len = begin;
	return false;
}

static void number_change(struct mutate_entry *e, const struct op *op)
{
	struct byte_buffer changed = {0};
	int left = op->field;

	if (message_change(e->payload.data, e->payload.len, 0, &left, op, &changed)) {
		byte_buffer_fini(&e->payload);
		e->payload = changed;
	} else {
		byte_buffer_fini(&changed);
	}
}

/* ---- batches, whose numbers are columns of differences ---- */

static struct batch_decoder *decoder;
static struct batch_encoder *encoder;

static void event_change(struct vs_event *e, const struct op *op)
{
	const uint64_t value = op_value(op);

	switch (op->field % 6) {
	case 0:
		e->arg0 = value;
		break;
	case 1:
		e->arg1 = value;
		break;
	case 2:
		e->pid = (int32_t)value;
		break;
	case 3:
		e->pid2 = (int32_t)value;
		break;
	case 4:
		e->type = (uint16_t)(op->value ? op->value : 1);
		break;
	default:
		e->seq += (uint32_t)value;
		break;
	}
}

enum batch_part { BATCH_TIMES, BATCH_EVENTS, BATCH_TOTALS };

static void batch_times_change(struct batch *b, const struct op *op)
{
	const uint64_t base = b->n_events ? b->events[0].time : 0;
	const uint64_t to = time_change(base, op);

	b->watermark = time_change(b->watermark, op);
	for (size_t i = 0; i < b->n_events; i++) {
		const uint64_t since = b->events[i].time - base;

		b->events[i].time = to > UINT64_MAX - since ? UINT64_MAX : to + since;
	}
}

static void batch_change(struct mutate_entry *e, const struct op *op, enum batch_part part)
{
	struct byte_buffer payload = {0};
	struct batch b;

	if (e->kind != FRAME_BATCH || batch_decode(decoder, e->payload.data, e->payload.len, &b))
		return;
	if (part == BATCH_TIMES) {
		batch_times_change(&b, op);
	} else if (part == BATCH_EVENTS) {
		for (size_t i = op->scale % 4; i < b.n_events; i += 1 + op->scale / 4)
			event_change(&b.events[i], op);
	} else {
		b.emitted = time_change(b.emitted, op);
		b.dropped_kernel = time_change(b.dropped_kernel, op);
		b.time_err = op_value(op);
	}
	if (batch_encode(encoder, &b, &payload)) {
		byte_buffer_fini(&payload);
		return;
	}
	byte_buffer_fini(&e->payload);
	e->payload = payload;
}

/* ---- entries ---- */

static void entry_copy(const struct mutate_entry *from, struct mutate_entry *to)
{
	*to = *from;
	to->payload = (struct byte_buffer){0};
	append(&to->payload, from->payload.data, from->payload.len);
}

static void entry_insert(struct mutate_recording *r, size_t at, const struct mutate_entry *from)
{
	struct mutate_entry copy;

	if (r->n == ENTRIES_MAX)
		return;
	entry_copy(from, &copy);
	r->entries = realloc(r->entries, (r->n + 1) * sizeof(*r->entries));
	FUZZ_CHECK(r->entries);
	memmove(r->entries + at + 1, r->entries + at, (r->n - at) * sizeof(*r->entries));
	r->entries[at] = copy;
	r->n++;
}

static void entry_remove(struct mutate_recording *r, size_t at)
{
	byte_buffer_fini(&r->entries[at].payload);
	r->n--;
	memmove(r->entries + at, r->entries + at + 1, (r->n - at) * sizeof(*r->entries));
}

static void entry_swap(struct mutate_entry *a, struct mutate_entry *b)
{
	struct mutate_entry t = *a;

	*a = *b;
	*b = t;
}

static void entry_change(struct mutate_recording *r, size_t at, const struct op *op)
{
	struct mutate_entry *e = &r->entries[at];

	switch (op->what % 12) {
	case 0:
		batch_change(e, op, BATCH_TIMES);
		break;
	case 1:
		batch_change(e, op, BATCH_EVENTS);
		break;
	case 2:
		batch_change(e, op, BATCH_TOTALS);
		break;
	case 3:
		if (e->kind != FRAME_BATCH)
			number_change(e, op);
		break;
	case 4:
		number_change(e, op);
		break;
	case 5:
		e->arrival_tsc = time_change(e->arrival_tsc, op);
		break;
	case 6:
		e->source = op->field % 2 ? op->value : (uint32_t)(at % SOURCES);
		break;
	case 7:
		e->kind = op->value % 32;
		break;
	case 8:
		entry_swap(e, &r->entries[(at + op->value * 7u + 1) % r->n]);
		break;
	case 9:
		entry_insert(r, (at + op->value) % (r->n + 1), e);
		break;
	case 10:
		entry_remove(r, at);
		break;
	default:
		e->session_id ^= op->value;
		e->frame_seq += op->field;
		break;
	}
}

/* Entries of the source and kind that the operation's field asks for. */
static bool op_is_for(const struct op *op, const struct mutate_entry *e)
{
	switch (op->field >> 5) {
	case 0:
		return e->source == VS_SOURCE_HOST;
	case 1:
		return e->source != VS_SOURCE_HOST;
	case 2:
		return e->kind == FRAME_BATCH;
	case 3:
		return e->kind != FRAME_BATCH;
	default:
		return true;
	}
}

void mutate_apply(struct mutate_recording *r, const uint8_t *script, size_t len)
{
	if (!decoder) {
		decoder = batch_decoder_new();
		encoder = batch_encoder_new();
		FUZZ_CHECK(decoder && encoder);
		batch_encoder_relay(encoder);
	}
	for (size_t i = 0; i < MUTATE_OPS_MAX && len >= MUTATE_OP_BYTES; i++) {
		struct op op = {script[0], script[1], script[2], script[3], 0, 0};
		size_t done = 0;

		memcpy(&op.first, script + 4, 2);
		memcpy(&op.n, script + 6, 2);
		script += MUTATE_OP_BYTES;
		len -= MUTATE_OP_BYTES;
		for (size_t at = r->n ? op.first % r->n : 0; at < r->n && done <= op.n; at++) {
			if (!op_is_for(&op, &r->entries[at]))
				continue;
			entry_change(r, at, &op);
			done++;
		}
	}
}

struct mutate_recording mutate_copy(const struct mutate_recording *from)
{
	struct mutate_recording copy = {calloc(from->n + 1, sizeof(*from->entries)), from->n};

	FUZZ_CHECK(copy.entries);
	for (size_t i = 0; i < from->n; i++)
		entry_copy(&from->entries[i], &copy.entries[i]);
	return copy;
}

void mutate_free(struct mutate_recording *r)
{
	for (size_t i = 0; i < r->n; i++)
		byte_buffer_fini(&r->entries[i].payload);
	free(r->entries);
	*r = (struct mutate_recording){0};
}

int mutate_read(const char *path, struct mutate_recording *out)
{
	struct frame_unpacker *unpacker = frame_unpacker_new();
	struct recording_reader *reader;
	struct recording_entry entry;
	int err = recording_reader_open(path, &reader);

	*out = (struct mutate_recording){0};
	if (err)
		goto out;
	while (recording_reader_next(reader, &entry) == 1) {
		const struct frame_header *h = &entry.frame.header;
		struct mutate_entry e = {.source = entry.source,
					 .arrival_tsc = entry.arrival_tsc,
					 .session_id = h->session_id,
					 .frame_seq = h->frame_seq,
					 .kind = h->kind};
		const uint8_t *payload;
		size_t len;

		if (h->kind == FRAME_RECORDING_END ||
		    frame_unpack(unpacker, &entry.frame, &payload, &len))
			continue;
		append(&e.payload, payload, len);
		entry_insert(out, out->n, &e);
		byte_buffer_fini(&e.payload);
	}
	recording_reader_close(reader);
out:
	frame_unpacker_free(unpacker);
	return err;
}

int mutate_write(const struct mutate_recording *r, const char *path)
{
	struct frame_writer *frames = frame_writer_new(0);
	struct recording_writer *w = NULL;
	struct byte_buffer frame = {0};
	int err = recording_writer_open(path, 0, 0, &w);

	for (size_t i = 0; i < r->n && !err; i++) {
		const struct mutate_entry *e = &r->entries[i];

		frame.len = 0;
		if (frame_write(frames, e->kind, e->payload.data, e->payload.len, &frame))
			continue; /* grown beyond what a frame holds */
		frame_restamp(frame.data, e->session_id, e->frame_seq);
		err = recording_writer_append(w, e->source, e->arrival_tsc, frame.data, frame.len);
	}
	if (w)
		recording_writer_close(w, 0);
	frame_writer_free(frames);
	byte_buffer_fini(&frame);
	return err;
}
