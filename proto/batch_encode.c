// SPDX-License-Identifier: GPL-2.0-only
/*
 * Encodes events as columns, in two passes. The first pass checks the events and counts them by
 * type; this gives each type's columns their place in buffers of fixed size. The second pass writes
 * the columns as they are sent, as varints. Then the message is put together from them. Its bytes
 * are those that protobuf-c packs. Only `out` allocates memory.
 */
#include "proto/codec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/batch_fields.h"
#include "proto/codec_predict.h"
#include "proto/event_catalog.h"
#include "proto/message.h"
#include "proto/wire_field.h"

/* What the encoder predicts, by type: enum column_predict. */
static const uint8_t predict_by_type[VS_EVENT_TYPE_LIMIT] = {
#define EVENT(number, NAME, name, sides, current, predict, ...) [number] = (predict),
#include "proto/events.def"
};

/* The most bytes of a varint. Each value of a column has as many of the buffer to itself, so
 * writing one needs no check. */
enum {
	TYPE_BYTES = 3,
	TIME_HIGH_BYTES = 8,
	INDEX_BYTES = 2,
	SIGNED_BYTES = 5,
	ARG_BYTES = 10,
};

_Static_assert(VS_BATCH_EVENTS_MAX <= 1 << 7 * INDEX_BYTES, "an index fits");

/* The varints written so far, and whether one of them is not 0. */
struct packed_writer {
	uint8_t *begin, *end;
	uint64_t any;
};

struct batch_encoder {
	bool relays; /* unknown types too */
	uint8_t type[VS_BATCH_EVENTS_MAX * TYPE_BYTES];
	uint8_t time_low[VS_BATCH_EVENTS_MAX];
	uint8_t time_high[VS_BATCH_EVENTS_MAX * TIME_HIGH_BYTES];
	uint8_t seq_jump_index[VS_BATCH_EVENTS_MAX * INDEX_BYTES];
	uint8_t seq_jump[VS_BATCH_EVENTS_MAX * SIGNED_BYTES];
	/* Shared by all types, each with a part of its own. */
	uint8_t pid[VS_BATCH_EVENTS_MAX * SIGNED_BYTES];
	uint8_t pid2[VS_BATCH_EVENTS_MAX * SIGNED_BYTES];
	uint8_t arg0[VS_BATCH_EVENTS_MAX * ARG_BYTES];
	uint8_t arg1[VS_BATCH_EVENTS_MAX * ARG_BYTES];

	struct packed_writer types, time_highs, seq_jump_indices, seq_jumps;
	struct encoder_column {
		size_t n; /* events of the type */
		struct packed_writer pid, pid2, arg0, arg1;
		size_t bytes; /* of its message; 0: it need not be sent */
	} columns[BATCH_SLOTS];
	struct type_slots slots;
	struct predictor predictor;
	size_t noise_end; /* of the last message */
};

struct batch_encoder *batch_encoder_new(void)
{
	return calloc(1, sizeof(struct batch_encoder));
}

void batch_encoder_free(struct batch_encoder *e)
{
	free(e);
}

void batch_encoder_relay(struct batch_encoder *e)
{
	e->relays = true;
}

static bool type_is_good(const struct batch_encoder *e, uint16_t type)
{
	return type && (event_type_known(type) || e->relays);
}

int batch_validate(const struct batch *b)
{
	uint64_t time = 0;

	if (b->n_events > VS_BATCH_EVENTS_MAX || b->cpu >= VS_CPUS_MAX)
		return -E2BIG;
	if (b->chord_begin > b->chord_end)
		return -EINVAL;
	for (size_t i = 0; i < b->n_events; i++) {
		const struct vs_event *event = &b->events[i];

		if (event->cpu != b->cpu || event->time < time || !event->type)
			return -EINVAL;
		time = event->time;
	}
	return 0;
}

static void packed_begin(struct packed_writer *p, uint8_t *begin)
{
	*p = (struct packed_writer){.begin = begin, .end = begin};
}

static void packed_add(struct packed_writer *p, uint64_t value)
{
	p->end = wire_varint_put(p->end, value);
	p->any |= value;
}

static uint32_t zigzag32(int32_t value)
{
	return (uint32_t)value << 1 ^ (0 - ((uint32_t)value >> 31));
}

/* Checks the events and lays out the columns. */
static int encoder_layout(struct batch_encoder *e, const struct batch *b)
{
	uint64_t time = 0;
	size_t first = 0;

	/* The slots that the previous batch used. */
	for (size_t slot = 0; slot < type_slots_used(&e->slots); slot++)
		e->columns[slot] = (struct encoder_column){0};
	type_slots_reset(&e->slots);
	for (size_t i = 0; i < b->n_events; i++) {
		const struct vs_event *event = &b->events[i];

		if (event->cpu != b->cpu || event->time < time || !type_is_good(e, event->type))
			return -EINVAL;
		time = event->time;
		e->columns[type_slot_get(&e->slots, event->type)].n++;
	}
	for (size_t slot = 1; slot < type_slots_used(&e->slots); slot++) {
		struct encoder_column *c = &e->columns[slot];

		packed_begin(&c->pid, e->pid + first * SIGNED_BYTES);
		packed_begin(&c->pid2, e->pid2 + first * SIGNED_BYTES);
		packed_begin(&c->arg0, e->arg0 + first * ARG_BYTES);
		packed_begin(&c->arg1, e->arg1 + first * ARG_BYTES);
		first += c->n;
	}
	packed_begin(&e->types, e->type);
	packed_begin(&e->time_highs, e->time_high);
	packed_begin(&e->seq_jump_indices, e->seq_jump_index);
	packed_begin(&e->seq_jumps, e->seq_jump);
	return 0;
}

static uint32_t slot_predict(uint32_t slot)
{
	return slot < VS_EVENT_TYPE_LIMIT ? predict_by_type[slot] : 0;
}

static void encoder_put(struct batch_encoder *e, const struct vs_event *event, uint32_t slot)
{
	uint32_t predict = slot_predict(slot);
	struct encoder_column *c = &e->columns[slot];
	struct predictor *p = &e->predictor;

	packed_add(&c->pid, zigzag32(wrapping_sub32(event->pid, predict_pid(p, slot, predict))));
	predictor_learn_pid(p, event, predict);
	packed_add(&c->pid2, zigzag32(wrapping_sub32(event->pid2, predict_pid2(p, slot, predict))));
	packed_add(&c->arg0, predict & PREDICT_ARG0_PREVIOUS
				     ? zigzag64(event->arg0 - p->previous[slot].arg0)
				     : event->arg0);
	packed_add(&c->arg1, predict & PREDICT_ARG1_PREVIOUS
				     ? zigzag64(event->arg1 - p->previous[slot].arg1)
				     : event->arg1);
	predictor_learn(p, event, slot, predict);
}

static void encoder_events(struct batch_encoder *e, const struct batch *b)
{
	/* Not in *e, of which the compiler must assume that each byte written changes it. */
	struct packed_writer types = e->types, time_highs = e->time_highs;
	uint64_t time = b->n_events ? b->events[0].time : 0;
	uint32_t seq = b->n_events ? b->events[0].seq : 0;

	predictor_reset(&e->predictor, type_slots_used(&e->slots));
	for (size_t i = 0; i < b->n_events; i++) {
		const struct vs_event *event = &b->events[i];
		const uint64_t delta = event->time - time;
		const uint32_t slot = type_slot(&e->slots, event->type);

		time = event->time;
		e->time_low[i] = (uint8_t)delta;
		packed_add(&time_highs, delta >> 8);
		packed_add(&types, event->type);
		if (event->seq != seq) {
			packed_add(&e->seq_jump_indices, i);
			packed_add(&e->seq_jumps,
				   zigzag32(wrapping_sub32((int32_t)event->seq, (int32_t)seq)));
		}
		seq = event->seq + 1;
		if (slot)
			encoder_put(e, event, slot);
	}
	e->types = types;
	e->time_highs = time_highs;
}

/* ---- the message ---- */

static size_t tag_bytes(uint32_t number)
{
	return wire_varint_bytes(number << 3);
}

static uint8_t *tag_put(uint8_t *at, uint32_t number, enum wire_type type)
{
	return wire_varint_put(at, number << 3 | type);
}

static size_t scalar_bytes(uint32_t number, uint64_t value)
{
	return value ? tag_bytes(number) + wire_varint_bytes(value) : 0;
}

static uint8_t *scalar_put(uint8_t *at, uint32_t number, uint64_t value)
{
	return value ? wire_varint_put(tag_put(at, number, WIRE_VARINT), value) : at;
}

static size_t content_bytes(uint32_t number, size_t len)
{
	return len ? tag_bytes(number) + wire_varint_bytes(len) + len : 0;
}

static uint8_t *content_put(uint8_t *at, uint32_t number, const uint8_t *content, size_t len)
{
	if (!len)
		return at;
	at = wire_varint_put(tag_put(at, number, WIRE_BYTES), len);
	memcpy(at, content, len);
	return at + len;
}

static size_t packed_len(const struct packed_writer *p)
{
	return (size_t)(p->end - p->begin);
}

/* The same without a column of zeros, which is not sent. */
static size_t column_len(const struct packed_writer *p)
{
	return p->any ? packed_len(p) : 0;
}

static uint32_t slot_type(const struct batch_encoder *e, uint32_t slot)
{
	return slot < VS_EVENT_TYPE_LIMIT ? slot : e->slots.new_types[slot - VS_EVENT_TYPE_LIMIT];
}

static size_t column_bytes(const struct batch_encoder *e, uint32_t slot)
{
	const struct encoder_column *c = &e->columns[slot];

	if (!c->n ||
	    (!slot_predict(slot) && !c->pid.any && !c->pid2.any && !c->arg0.any && !c->arg1.any))
		return 0;
	return scalar_bytes(COLUMN_TYPE, slot_type(e, slot)) +
	       scalar_bytes(COLUMN_PREDICT, slot_predict(slot)) +
	       content_bytes(COLUMN_PID, column_len(&c->pid)) +
	       content_bytes(COLUMN_PID2, column_len(&c->pid2)) +
	       content_bytes(COLUMN_ARG0, column_len(&c->arg0)) +
	       content_bytes(COLUMN_ARG1, column_len(&c->arg1));
}

static uint8_t *column_put(uint8_t *at, const struct batch_encoder *e, uint32_t slot)
{
	const struct encoder_column *c = &e->columns[slot];

	if (!c->bytes)
		return at;
	at = wire_varint_put(tag_put(at, BATCH_COLUMNS, WIRE_BYTES), c->bytes);
	at = scalar_put(at, COLUMN_TYPE, slot_type(e, slot));
	at = scalar_put(at, COLUMN_PREDICT, slot_predict(slot));
	at = content_put(at, COLUMN_PID, c->pid.begin, column_len(&c->pid));
	at = content_put(at, COLUMN_PID2, c->pid2.begin, column_len(&c->pid2));
	at = content_put(at, COLUMN_ARG0, c->arg0.begin, column_len(&c->arg0));
	return content_put(at, COLUMN_ARG1, c->arg1.begin, column_len(&c->arg1));
}

/* A field of one number. The first are before the columns, the last behind them. */
struct scalar {
	uint32_t number;
	uint64_t value;
};

enum { SCALARS_FIRST = 8, SCALARS_LAST = 3, SCALARS = SCALARS_FIRST + SCALARS_LAST };

static void batch_scalars(const struct batch *b, struct scalar out[SCALARS])
{
	const struct scalar scalars[SCALARS] = {
		{BATCH_CPU, b->cpu},
		{BATCH_BASE_TIME, b->n_events ? b->events[0].time : 0},
		{BATCH_BASE_SEQ, b->n_events ? b->events[0].seq : 0},
		{BATCH_TIME_ERR, b->time_err},
		{BATCH_WATERMARK, b->watermark},
		{BATCH_EMITTED, b->emitted},
		{BATCH_DROPPED_KERNEL, b->dropped_kernel},
		{BATCH_DROPPED_USER, b->dropped_user},
		{BATCH_CHORD_BEGIN, b->chord_begin},
		{BATCH_CHORD_END, b->chord_end},
		{BATCH_TSC_CPU, b->tsc_cpu},
	};

	memcpy(out, scalars, sizeof(scalars));
}

static int encoder_message(struct batch_encoder *e, const struct batch *b, struct byte_buffer *out)
{
	const uint32_t n_slots = type_slots_used(&e->slots);
	struct scalar scalars[SCALARS];
	size_t bytes = 0;
	uint8_t *at;
	int err;

	batch_scalars(b, scalars);
	for (size_t i = 0; i < SCALARS; i++)
		bytes += scalar_bytes(scalars[i].number, scalars[i].value);
	for (uint32_t slot = 1; slot < n_slots; slot++) {
		e->columns[slot].bytes = column_bytes(e, slot);
		bytes += content_bytes(BATCH_COLUMNS, e->columns[slot].bytes);
	}
	bytes += content_bytes(BATCH_TYPE, packed_len(&e->types)) +
		 content_bytes(BATCH_TIME_LOW, b->n_events) +
		 content_bytes(BATCH_TIME_HIGH, packed_len(&e->time_highs)) +
		 content_bytes(BATCH_SEQ_JUMP_INDEX, packed_len(&e->seq_jump_indices)) +
		 content_bytes(BATCH_SEQ_JUMP, packed_len(&e->seq_jumps));
	err = byte_buffer_reserve(out, bytes + 1); /* wire_varint_put() may write one more */
	if (err)
		return err;

	at = out->data + out->len;
	for (size_t i = 0; i < SCALARS_FIRST; i++)
		at = scalar_put(at, scalars[i].number, scalars[i].value);
	at = content_put(at, BATCH_TYPE, e->type, packed_len(&e->types));
	at = content_put(at, BATCH_TIME_LOW, e->time_low, b->n_events);
	e->noise_end = (size_t)(at - (out->data + out->len));
	at = content_put(at, BATCH_TIME_HIGH, e->time_high, packed_len(&e->time_highs));
	for (uint32_t slot = 1; slot < n_slots; slot++)
		at = column_put(at, e, slot);
	at = content_put(at, BATCH_SEQ_JUMP_INDEX, e->seq_jump_index,
			 packed_len(&e->seq_jump_indices));
	at = content_put(at, BATCH_SEQ_JUMP, e->seq_jump, packed_len(&e->seq_jumps));
	for (size_t i = SCALARS_FIRST; i < SCALARS; i++)
		at = scalar_put(at, scalars[i].number, scalars[i].value);
	out->len += bytes;
	return 0;
}

int batch_encode(struct batch_encoder *e, const struct batch *b, struct byte_buffer *out)
{
	int err;

	if (b->n_events > VS_BATCH_EVENTS_MAX)
		return -E2BIG;
	err = encoder_layout(e, b);
	if (err)
		return err;
	encoder_events(e, b);
	return encoder_message(e, b, out);
}

size_t batch_encoder_noise_end(const struct batch_encoder *e)
{
	return e->noise_end;
}
