// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decodes columns into events. The payload comes from a peer: protobuf-c parses it into an arena
 * of bounded size, and the decoder compares all lengths with the number of events before it builds
 * the first one.
 */
#include "proto/codec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "proto/arena.h"
#include "proto/codec_predict.h"
#include "proto/message.h"
#include "wire.pb-c.h"

/* The columns of VS_BATCH_EVENTS_MAX events are 400 KB; protobuf-c's own records are small. */
enum { DECODE_ARENA_BYTES = 1024 * 1024 };

struct batch_decoder {
	struct arena arena;
	struct predictor predictor;
	const Vcpuscope__Wire__Column *columns[BATCH_SLOTS]; /* NULL: all zeros */
	size_t counts[BATCH_SLOTS];
	struct type_slots slots;
	struct vs_event events[VS_BATCH_EVENTS_MAX];
};

struct batch_decoder *batch_decoder_new(void)
{
	struct batch_decoder *d = calloc(1, sizeof(*d));

	if (d)
		arena_init(&d->arena, DECODE_ARENA_BYTES);
	return d;
}

void batch_decoder_free(struct batch_decoder *d)
{
	if (!d)
		return;
	arena_fini(&d->arena);
	free(d);
}

static int decoder_check_types(struct batch_decoder *d, const Vcpuscope__Wire__Batch *m)
{
	type_slots_reset(&d->slots);
	for (size_t slot = 0; slot < BATCH_SLOTS; slot++)
		d->counts[slot] = 0;
	for (size_t i = 0; i < m->n_type; i++) {
		if (!m->type[i])
			return -EBADMSG;
		d->counts[type_slot_get(&d->slots, m->type[i])]++;
	}
	return 0;
}

static bool column_fits(size_t n, size_t events)
{
	return n == 0 || n == events;
}

static int decoder_check_columns(struct batch_decoder *d, const Vcpuscope__Wire__Batch *m)
{
	for (size_t slot = 0; slot < BATCH_SLOTS; slot++)
		d->columns[slot] = NULL;
	for (size_t i = 0; i < m->n_columns; i++) {
		const Vcpuscope__Wire__Column *c = m->columns[i];
		const uint32_t slot = type_slot(&d->slots, c->type);
		const size_t n = d->counts[slot];

		if (!slot && c->type >= VS_EVENT_TYPE_LIMIT)
			continue; /* of events whose fields have no place */
		if (d->columns[slot] || c->predict & ~(uint32_t)PREDICT_KNOWN ||
		    !column_fits(c->n_pid, n) || !column_fits(c->n_pid2, n) ||
		    !column_fits(c->n_arg0, n) || !column_fits(c->n_arg1, n))
			return -EBADMSG;
		d->columns[slot] = c;
	}
	return 0;
}

static int decoder_check(struct batch_decoder *d, const Vcpuscope__Wire__Batch *m)
{
	int err;

	if (m->cpu >= VS_CPUS_MAX || m->n_type > VS_BATCH_EVENTS_MAX)
		return -E2BIG;
	if (m->n_time_high != m->n_type || m->time_low.len != m->n_type ||
	    m->n_seq_jump != m->n_seq_jump_index)
		return -EBADMSG;
	for (size_t i = 0; i < m->n_seq_jump_index; i++)
		if (m->seq_jump_index[i] >= m->n_type ||
		    (i && m->seq_jump_index[i] <= m->seq_jump_index[i - 1]))
			return -EBADMSG;
	err = decoder_check_types(d, m);
	return err ? err : decoder_check_columns(d, m);
}

static void decoder_take(struct batch_decoder *d, struct vs_event *event, uint32_t slot)
{
	static const Vcpuscope__Wire__Column zeros = VCPUSCOPE__WIRE__COLUMN__INIT;
	const Vcpuscope__Wire__Column *c = d->columns[slot];
	struct predictor *p = &d->predictor;
	size_t at = d->counts[slot]++;
	uint64_t arg0, arg1;

	if (!c)
		c = &zeros;
	event->pid = wrapping_add32(predict_pid(p, slot, c->predict), c->n_pid ? c->pid[at] : 0);
	predictor_learn_pid(p, event, c->predict);
	event->pid2 =
		wrapping_add32(predict_pid2(p, slot, c->predict), c->n_pid2 ? c->pid2[at] : 0);
	arg0 = c->n_arg0 ? c->arg0[at] : 0;
	arg1 = c->n_arg1 ? c->arg1[at] : 0;
	event->arg0 = c->predict & PREDICT_ARG0_PREVIOUS ? p->previous[slot].arg0 + unzigzag64(arg0)
							 : arg0;
	event->arg1 = c->predict & PREDICT_ARG1_PREVIOUS ? p->previous[slot].arg1 + unzigzag64(arg1)
							 : arg1;
	predictor_learn(p, event, slot, c->predict);
}

static void fields_clear(struct vs_event *event)
{
	event->pid = event->pid2 = 0;
	event->arg0 = event->arg1 = 0;
}

static int decoder_build(struct batch_decoder *d, const Vcpuscope__Wire__Batch *m)
{
	uint64_t time = m->base_time;
	uint32_t seq = m->base_seq;
	size_t jump = 0;

	d->predictor = (struct predictor){0};
	for (size_t slot = 0; slot < BATCH_SLOTS; slot++)
		d->counts[slot] = 0; /* from here on: how many were taken */
	for (size_t i = 0; i < m->n_type; i++) {
		struct vs_event *event = &d->events[i];
		uint64_t delta;
		uint32_t slot;

		if (m->time_high[i] > UINT64_MAX >> 8)
			return -EBADMSG;
		delta = m->time_high[i] << 8 | m->time_low.data[i];
		if (delta > UINT64_MAX - time)
			return -EBADMSG;
		time += delta;
		if (jump < m->n_seq_jump && m->seq_jump_index[jump] == i)
			seq += (uint32_t)m->seq_jump[jump++];
		event->time = time;
		event->seq = seq++;
		event->cpu = (uint16_t)m->cpu;
		event->type = m->type[i] < EVENT_TYPE_MAX ? (uint16_t)m->type[i] : EVENT_TYPE_MAX;
		slot = type_slot(&d->slots, m->type[i]);
		if (slot)
			decoder_take(d, event, slot);
		else
			fields_clear(event);
	}
	return 0;
}

int batch_decode(struct batch_decoder *d, const uint8_t *payload, size_t len, struct batch *out)
{
	const Vcpuscope__Wire__Batch *m;
	ProtobufCMessage *base;
	int err;

	arena_reset(&d->arena);
	err = arena_unpack(&d->arena, &vcpuscope__wire__batch__descriptor, payload, len, &base);
	if (err)
		return err;
	m = (const Vcpuscope__Wire__Batch *)base;
	err = decoder_check(d, m);
	if (err)
		return err;
	err = decoder_build(d, m);
	if (err)
		return err;
	if (m->chord_begin > m->chord_end)
		return -EBADMSG;
	*out = (struct batch){
		.cpu = (uint16_t)m->cpu,
		.time_err = m->time_err,
		.watermark = m->watermark,
		.emitted = m->emitted,
		.dropped_kernel = m->dropped_kernel,
		.dropped_user = m->dropped_user,
		.tsc_cpu = m->tsc_cpu,
		.chord_begin = m->chord_begin,
		.chord_end = m->chord_end,
		.n_events = m->n_type,
		.events = d->events,
	};
	return 0;
}
