// SPDX-License-Identifier: GPL-2.0-only
/*
 * Encodes events as columns, in two passes. The first pass checks the events and counts them by
 * type; this gives each type's columns their place in arrays of fixed size. The second pass fills
 * the columns. protobuf-c then packs the arrays. Only `out` allocates memory.
 */
#include "proto/codec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "proto/codec_predict.h"
#include "proto/event_catalog.h"
#include "proto/message.h"
#include "wire.pb-c.h"

/* What the encoder predicts, by type: enum column_predict. */
static const uint8_t predict_by_type[VS_EVENT_TYPE_LIMIT] = {
#define EVENT(number, NAME, name, sides, current, predict, ...) [number] = (predict),
#include "proto/events.def"
};

struct batch_encoder {
	bool relays; /* unknown types too */
	uint32_t type[VS_BATCH_EVENTS_MAX];
	uint8_t time_low[VS_BATCH_EVENTS_MAX];
	uint64_t time_high[VS_BATCH_EVENTS_MAX];
	uint32_t seq_jump_index[VS_BATCH_EVENTS_MAX];
	int32_t seq_jump[VS_BATCH_EVENTS_MAX];
	/* Shared by all types, each with a part of its own. */
	int32_t pid[VS_BATCH_EVENTS_MAX];
	int32_t pid2[VS_BATCH_EVENTS_MAX];
	uint64_t arg0[VS_BATCH_EVENTS_MAX];
	uint64_t arg1[VS_BATCH_EVENTS_MAX];

	struct encoder_column {
		size_t first, n;
		/* The columns' bits or-ed together: 0 if a column need not be sent. */
		uint32_t any_pid, any_pid2;
		uint64_t any_arg0, any_arg1;
	} columns[BATCH_SLOTS];
	struct type_slots slots;
	struct predictor predictor;
	Vcpuscope__Wire__Column messages[BATCH_SLOTS];
	Vcpuscope__Wire__Column *message_list[BATCH_SLOTS];
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
		e->columns[slot].first = first;
		first += e->columns[slot].n;
		e->columns[slot].n = 0;
	}
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
	size_t at = c->first + c->n++;

	e->pid[at] = wrapping_sub32(event->pid, predict_pid(p, slot, predict));
	predictor_learn_pid(p, event, predict);
	e->pid2[at] = wrapping_sub32(event->pid2, predict_pid2(p, slot, predict));
	e->arg0[at] = predict & PREDICT_ARG0_PREVIOUS
			      ? zigzag64(event->arg0 - p->previous[slot].arg0)
			      : event->arg0;
	e->arg1[at] = predict & PREDICT_ARG1_PREVIOUS
			      ? zigzag64(event->arg1 - p->previous[slot].arg1)
			      : event->arg1;
	predictor_learn(p, event, slot, predict);
	c->any_pid |= (uint32_t)e->pid[at];
	c->any_pid2 |= (uint32_t)e->pid2[at];
	c->any_arg0 |= e->arg0[at];
	c->any_arg1 |= e->arg1[at];
}

static size_t encoder_messages(struct batch_encoder *e)
{
	size_t n = 0;

	for (uint32_t slot = 1; slot < type_slots_used(&e->slots); slot++) {
		const struct encoder_column *c = &e->columns[slot];
		Vcpuscope__Wire__Column *m = &e->messages[n];

		if (!c->n || (!slot_predict(slot) && !c->any_pid && !c->any_pid2 && !c->any_arg0 &&
			      !c->any_arg1))
			continue;
		vcpuscope__wire__column__init(m);
		m->type = slot < VS_EVENT_TYPE_LIMIT
				  ? slot
				  : e->slots.new_types[slot - VS_EVENT_TYPE_LIMIT];
		m->predict = slot_predict(slot);
		m->n_pid = c->any_pid ? c->n : 0;
		m->pid = e->pid + c->first;
		m->n_pid2 = c->any_pid2 ? c->n : 0;
		m->pid2 = e->pid2 + c->first;
		m->n_arg0 = c->any_arg0 ? c->n : 0;
		m->arg0 = e->arg0 + c->first;
		m->n_arg1 = c->any_arg1 ? c->n : 0;
		m->arg1 = e->arg1 + c->first;
		e->message_list[n++] = m;
	}
	return n;
}

int batch_encode(struct batch_encoder *e, const struct batch *b, struct byte_buffer *out)
{
	Vcpuscope__Wire__Batch m = VCPUSCOPE__WIRE__BATCH__INIT;
	uint64_t time;
	uint32_t seq;
	int err;

	if (b->n_events > VS_BATCH_EVENTS_MAX)
		return -E2BIG;
	err = encoder_layout(e, b);
	if (err)
		return err;
	m.cpu = b->cpu;
	m.time_err = b->time_err;
	m.watermark = b->watermark;
	m.emitted = b->emitted;
	m.dropped_kernel = b->dropped_kernel;
	m.dropped_user = b->dropped_user;
	m.tsc_cpu = b->tsc_cpu;
	m.chord_begin = b->chord_begin;
	m.chord_end = b->chord_end;
	m.base_time = time = b->n_events ? b->events[0].time : 0;
	m.base_seq = seq = b->n_events ? b->events[0].seq : 0;
	predictor_reset(&e->predictor, type_slots_used(&e->slots));
	for (size_t i = 0; i < b->n_events; i++) {
		const struct vs_event *event = &b->events[i];
		uint64_t delta = event->time - time;
		uint32_t slot;

		e->type[i] = event->type;
		e->time_low[i] = (uint8_t)delta;
		e->time_high[i] = delta >> 8;
		time = event->time;
		if (event->seq != seq) {
			e->seq_jump_index[m.n_seq_jump] = (uint32_t)i;
			e->seq_jump[m.n_seq_jump++] = (int32_t)(event->seq - seq);
		}
		seq = event->seq + 1;
		slot = type_slot(&e->slots, event->type);
		if (slot)
			encoder_put(e, event, slot);
	}
	m.n_type = m.n_time_high = m.time_low.len = b->n_events;
	m.type = e->type;
	m.time_low.data = e->time_low;
	m.time_high = e->time_high;
	m.n_seq_jump_index = m.n_seq_jump;
	m.seq_jump_index = e->seq_jump_index;
	m.seq_jump = e->seq_jump;
	m.n_columns = encoder_messages(e);
	m.columns = e->message_list;
	err = byte_buffer_reserve(out, protobuf_c_message_get_packed_size(&m.base));
	if (err)
		return err;
	out->len += protobuf_c_message_pack(&m.base, out->data + out->len);
	return 0;
}
