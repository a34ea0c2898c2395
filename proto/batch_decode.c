// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decodes columns into events. The payload comes from a peer. One pass over its fields finds the
 * columns and counts their values; nothing is copied. The decoder compares all counts with the
 * number of events before it builds the first one. It then takes one value of each column for each
 * event, so a column needs no array of its own.
 *
 * The property prop_batch compares this reader with protobuf-c. It is stricter in two things that
 * no encoder does: a packed column must be packed, and in one piece.
 */
#include "proto/codec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "proto/batch_fields.h"
#include "proto/codec_predict.h"
#include "proto/message.h"
#include "proto/wire_field.h"

/* An encoder writes at most one column for each of its slots; a newer one may have more slots. */
enum { COLUMNS_MAX = 1024 };

/* The varints of a packed column. Its last byte ends a varint, so taking `n` of them ends there. */
struct packed {
	const uint8_t *at;
	size_t n;
};

struct column {
	bool known;
	uint32_t type, predict;
	struct packed pid, pid2, arg0, arg1;
};

struct wire_batch {
	uint64_t cpu, base_time, base_seq, time_err, watermark, tsc_cpu;
	uint64_t emitted, dropped_kernel, dropped_user, chord_begin, chord_end;
	struct wire_cursor time_low;
	struct packed type, time_high, seq_jump_index, seq_jump;
	size_t n_columns;
};

struct batch_decoder {
	struct predictor predictor;
	struct wire_cursor wire_columns[COLUMNS_MAX];
	/* Of the slots in use. */
	struct column columns[BATCH_SLOTS];
	size_t counts[BATCH_SLOTS];
	struct type_slots slots;
	bool overlong; /* a varint of more than 10 bytes was taken */
	uint8_t slot_of[VS_BATCH_EVENTS_MAX];
	struct vs_event events[VS_BATCH_EVENTS_MAX];
};

_Static_assert(BATCH_SLOTS <= UINT8_MAX + 1, "a slot fits in slot_of");

struct batch_decoder *batch_decoder_new(void)
{
	return calloc(1, sizeof(struct batch_decoder));
}

void batch_decoder_free(struct batch_decoder *d)
{
	free(d);
}

/* The rest of a varint of more than a byte. */
static uint64_t packed_take_long(struct batch_decoder *d, struct packed *p, uint64_t value)
{
	unsigned int shift = 7;
	uint8_t byte;

	value &= 0x7f;
	do {
		byte = *p->at++;
		if (shift > 63)
			d->overlong = true;
		else
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

/* Not more often than p->n says. */
static inline uint64_t packed_take(struct batch_decoder *d, struct packed *p)
{
	const uint64_t value = *p->at++;

	return value < 0x80 ? value : packed_take_long(d, p, value);
}

static inline int32_t packed_take_signed(struct batch_decoder *d, struct packed *p)
{
	const uint32_t coded = (uint32_t)packed_take(d, p);

	return (int32_t)(coded >> 1 ^ (0 - (coded & 1)));
}

static int field_scalar(const struct wire_field *f, uint64_t *out)
{
	if (f->type != WIRE_VARINT)
		return -EBADMSG;
	*out = f->value;
	return 0;
}

static int field_scalar32(const struct wire_field *f, uint32_t *out)
{
	if (f->type != WIRE_VARINT)
		return -EBADMSG;
	*out = (uint32_t)f->value;
	return 0;
}

/* Counts the bytes that end a varint, eight at a time: their top bit is 0. */
static size_t varints_count(const uint8_t *bytes, size_t len)
{
	const uint64_t tops = 0x8080808080808080, ones = 0x0101010101010101;
	size_t n = 0, i = 0;

	for (uint64_t word; len - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		n += ((~word & tops) >> 7) * ones >> 56;
	}
	for (; i < len; i++)
		n += !(bytes[i] & 0x80);
	return n;
}

static int field_packed(const struct wire_field *f, struct packed *out)
{
	const size_t len = (size_t)(f->bytes.end - f->bytes.at);

	if (f->type != WIRE_BYTES || out->n || (len && f->bytes.end[-1] & 0x80))
		return -EBADMSG;
	if (!len)
		return 0;
	*out = (struct packed){f->bytes.at, varints_count(f->bytes.at, len)};
	return 0;
}

static int batch_field_take(struct batch_decoder *d, struct wire_batch *m,
			    const struct wire_field *f)
{
	switch (f->number) {
	case BATCH_CPU:
		return field_scalar(f, &m->cpu);
	case BATCH_BASE_TIME:
		return field_scalar(f, &m->base_time);
	case BATCH_BASE_SEQ:
		return field_scalar(f, &m->base_seq);
	case BATCH_TIME_ERR:
		return field_scalar(f, &m->time_err);
	case BATCH_WATERMARK:
		return field_scalar(f, &m->watermark);
	case BATCH_EMITTED:
		return field_scalar(f, &m->emitted);
	case BATCH_DROPPED_KERNEL:
		return field_scalar(f, &m->dropped_kernel);
	case BATCH_DROPPED_USER:
		return field_scalar(f, &m->dropped_user);
	case BATCH_TYPE:
		return field_packed(f, &m->type);
	case BATCH_TIME_LOW:
		if (f->type != WIRE_BYTES)
			return -EBADMSG;
		m->time_low = f->bytes;
		return 0;
	case BATCH_TIME_HIGH:
		return field_packed(f, &m->time_high);
	case BATCH_COLUMNS:
		if (f->type != WIRE_BYTES)
			return -EBADMSG;
		if (m->n_columns == COLUMNS_MAX)
			return -E2BIG;
		d->wire_columns[m->n_columns++] = f->bytes;
		return 0;
	case BATCH_SEQ_JUMP_INDEX:
		return field_packed(f, &m->seq_jump_index);
	case BATCH_SEQ_JUMP:
		return field_packed(f, &m->seq_jump);
	case BATCH_CHORD_BEGIN:
		return field_scalar(f, &m->chord_begin);
	case BATCH_CHORD_END:
		return field_scalar(f, &m->chord_end);
	case BATCH_TSC_CPU:
		return field_scalar(f, &m->tsc_cpu);
	default:
		return 0; /* of a newer peer */
	}
}

static int column_field_take(struct column *c, const struct wire_field *f)
{
	switch (f->number) {
	case COLUMN_TYPE:
		return field_scalar32(f, &c->type);
	case COLUMN_PREDICT:
		return field_scalar32(f, &c->predict);
	case COLUMN_PID:
		return field_packed(f, &c->pid);
	case COLUMN_PID2:
		return field_packed(f, &c->pid2);
	case COLUMN_ARG0:
		return field_packed(f, &c->arg0);
	case COLUMN_ARG1:
		return field_packed(f, &c->arg1);
	default:
		return 0; /* of a newer peer */
	}
}

static int batch_read(struct batch_decoder *d, struct wire_cursor c, struct wire_batch *m)
{
	struct wire_field f;
	int err = 0;

	while (c.at < c.end && !err)
		err = wire_field_next(&c, &f) ? batch_field_take(d, m, &f) : -EBADMSG;
	return err;
}

static int column_read(struct wire_cursor c, struct column *out)
{
	struct wire_field f;
	int err = 0;

	*out = (struct column){.known = true};
	while (c.at < c.end && !err)
		err = wire_field_next(&c, &f) ? column_field_take(out, &f) : -EBADMSG;
	return err;
}

static int decoder_take_types(struct batch_decoder *d, struct wire_batch *m)
{
	struct packed types = m->type;

	/* The slots that the previous batch used. */
	memset(d->counts, 0, type_slots_used(&d->slots) * sizeof(d->counts[0]));
	type_slots_reset(&d->slots);
	for (size_t i = 0; i < m->type.n; i++) {
		const uint32_t type = (uint32_t)packed_take(d, &types);
		uint32_t slot;

		if (!type)
			return -EBADMSG;
		slot = type_slot_get(&d->slots, type);
		d->counts[slot]++;
		d->slot_of[i] = (uint8_t)slot;
		d->events[i].type = type < EVENT_TYPE_MAX ? (uint16_t)type : EVENT_TYPE_MAX;
	}
	return 0;
}

static void packed_skip(struct batch_decoder *d, struct packed p)
{
	while (p.n--)
		packed_take(d, &p);
}

static bool packed_fits(const struct packed *p, size_t events)
{
	return !p->n || p->n == events;
}

/* A column that was left out: all its values are 0. So taking one needs no branch. */
static void column_fill(struct column *c)
{
	static const uint8_t zeros[VS_BATCH_EVENTS_MAX];

	c->pid.at = c->pid.n ? c->pid.at : zeros;
	c->pid2.at = c->pid2.n ? c->pid2.at : zeros;
	c->arg0.at = c->arg0.n ? c->arg0.at : zeros;
	c->arg1.at = c->arg1.n ? c->arg1.at : zeros;
}

static int decoder_take_columns(struct batch_decoder *d, const struct wire_batch *m)
{
	memset(d->columns, 0, type_slots_used(&d->slots) * sizeof(d->columns[0]));
	for (size_t i = 0; i < m->n_columns; i++) {
		struct column c;
		uint32_t slot;
		int err = column_read(d->wire_columns[i], &c);

		if (err)
			return err;
		slot = type_slot(&d->slots, c.type);
		if (!slot) {
			packed_skip(d, c.pid);
			packed_skip(d, c.pid2);
			packed_skip(d, c.arg0);
			packed_skip(d, c.arg1);
			if (c.type >= VS_EVENT_TYPE_LIMIT)
				continue; /* of events whose fields have no place */
		}
		if (d->columns[slot].known || c.predict & ~(uint32_t)PREDICT_KNOWN ||
		    !packed_fits(&c.pid, d->counts[slot]) ||
		    !packed_fits(&c.pid2, d->counts[slot]) ||
		    !packed_fits(&c.arg0, d->counts[slot]) ||
		    !packed_fits(&c.arg1, d->counts[slot]))
			return -EBADMSG;
		d->columns[slot] = c;
	}
	for (size_t slot = 0; slot < type_slots_used(&d->slots); slot++)
		column_fill(&d->columns[slot]);
	return 0;
}

static int decoder_check(const struct wire_batch *m)
{
	if ((uint32_t)m->cpu >= VS_CPUS_MAX || m->type.n > VS_BATCH_EVENTS_MAX ||
	    m->seq_jump.n > VS_BATCH_EVENTS_MAX || m->seq_jump_index.n > VS_BATCH_EVENTS_MAX)
		return -E2BIG;
	if (m->time_high.n != m->type.n ||
	    (size_t)(m->time_low.end - m->time_low.at) != m->type.n ||
	    m->seq_jump.n != m->seq_jump_index.n)
		return -EBADMSG;
	return 0;
}

static inline void decoder_take(struct batch_decoder *d, struct vs_event *event, uint32_t slot)
{
	struct column *c = &d->columns[slot];
	struct predictor *p = &d->predictor;
	uint64_t arg0, arg1;

	event->pid =
		wrapping_add32(predict_pid(p, slot, c->predict), packed_take_signed(d, &c->pid));
	predictor_learn_pid(p, event, c->predict);
	event->pid2 =
		wrapping_add32(predict_pid2(p, slot, c->predict), packed_take_signed(d, &c->pid2));
	arg0 = packed_take(d, &c->arg0);
	arg1 = packed_take(d, &c->arg1);
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

/* Takes the index of the next jump, which must be `least` or above; *out: no event's, if there is
 * no more. */
static int jump_next(struct batch_decoder *d, struct wire_batch *m, size_t least, size_t *out)
{
	*out = SIZE_MAX;
	if (!m->seq_jump_index.n)
		return 0;
	m->seq_jump_index.n--;
	*out = (uint32_t)packed_take(d, &m->seq_jump_index);
	return *out >= least && *out < m->type.n ? 0 : -EBADMSG;
}

/* Builds the events `from` to `until` - 1, whose sequence numbers are consecutive from `seq` on.
 * *time: of the event before. Returns 0 or -EBADMSG. */
static int events_build(struct batch_decoder *d, struct wire_batch *m, size_t from, size_t until,
			uint32_t seq, uint64_t *time)
{
	const uint16_t cpu = (uint16_t)m->cpu;

	for (size_t i = from; i < until; i++) {
		struct vs_event *event = &d->events[i];
		const uint64_t high = packed_take(d, &m->time_high);
		const uint64_t delta = high << 8 | m->time_low.at[i];

		if (high > UINT64_MAX >> 8 || delta > UINT64_MAX - *time)
			return -EBADMSG;
		*time += delta;
		event->time = *time;
		event->seq = seq++;
		event->cpu = cpu;
		if (d->slot_of[i])
			decoder_take(d, event, d->slot_of[i]);
		else
			fields_clear(event);
	}
	return 0;
}

static int decoder_build(struct batch_decoder *d, struct wire_batch *m)
{
	uint64_t time = m->base_time;
	uint32_t seq = (uint32_t)m->base_seq;
	size_t jump;
	int err = jump_next(d, m, 0, &jump);

	predictor_reset(&d->predictor, type_slots_used(&d->slots));
	for (size_t i = 0, until; i < m->type.n && !err; i = until) {
		if (jump == i) {
			seq += (uint32_t)packed_take_signed(d, &m->seq_jump);
			err = jump_next(d, m, i + 1, &jump);
			if (err)
				break;
		}
		until = jump < m->type.n ? jump : m->type.n;
		err = events_build(d, m, i, until, seq, &time);
		seq += (uint32_t)(until - i);
	}
	return err || !d->overlong ? err : -EBADMSG;
}

int batch_decode(struct batch_decoder *d, const uint8_t *payload, size_t len, struct batch *out)
{
	struct wire_batch m = {0};
	int err;

	d->overlong = false;
	err = batch_read(d, (struct wire_cursor){payload, payload + len}, &m);
	if (!err)
		err = decoder_check(&m);
	if (!err)
		err = decoder_take_types(d, &m);
	if (!err)
		err = decoder_take_columns(d, &m);
	if (!err)
		err = decoder_build(d, &m);
	if (err)
		return err;
	if (m.chord_begin > m.chord_end)
		return -EBADMSG;
	*out = (struct batch){
		.cpu = (uint16_t)m.cpu,
		.time_err = m.time_err,
		.watermark = m.watermark,
		.emitted = m.emitted,
		.dropped_kernel = m.dropped_kernel,
		.dropped_user = m.dropped_user,
		.tsc_cpu = (uint32_t)m.tsc_cpu,
		.chord_begin = m.chord_begin,
		.chord_end = m.chord_end,
		.n_events = m.type.n,
		.events = d->events,
	};
	return 0;
}
