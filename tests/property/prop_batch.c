// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compares the batch decoder with protobuf-c, on batches of random shape, as they are and damaged
 * in many ways. The reference unpacks with protobuf-c, then checks the batch as wire.proto says.
 *
 * Properties: the reference accepts what the decoder accepts, with the same result. If the
 * reference accepts a batch that an encoder can write (fields in any order, fields of a newer
 * version, long varints), the decoder accepts it. If the reference accepts any other batch without
 * a field of number 0, the decoder accepts it after protobuf-c has packed it again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/codec.h"
#include "proto/message.h"
#include "wire.pb-c.h"

enum { RUNS = 3000, DAMAGES = 12, EVENTS = 200, TYPES = 6, NEW_SLOTS = 192, CAPACITY = 1 << 17 };

static uint64_t seed = 88172645463325252;

static uint64_t random_below(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

/* A value of any length, small ones more often. */
static uint64_t random_value(void)
{
	const uint64_t high = random_below(UINT64_MAX);

	return random_below(2) ? 0 : high >> random_below(64);
}

/* ---- the reference ---- */

struct reference {
	struct batch batch;
	struct vs_event events[VS_BATCH_EVENTS_MAX];
	const Vcpuscope__Wire__Column *columns[UINT16_MAX]; /* by type */
	size_t taken[UINT16_MAX];
	bool has_place[UINT16_MAX];
	struct {
		int32_t pid, pid2;
		uint64_t arg0, arg1;
	} previous[UINT16_MAX];
};

static bool fits(size_t n, size_t events)
{
	return !n || n == events;
}

/* Which types have a place, and how many events each has. False: a type that may not be. */
static bool reference_types(struct reference *r, const Vcpuscope__Wire__Batch *m, size_t *unplaced)
{
	size_t n_new = 0;

	*unplaced = 0;
	memset(r->taken, 0, sizeof(r->taken));
	memset(r->has_place, 0, sizeof(r->has_place));
	memset(r->columns, 0, sizeof(r->columns));
	memset(r->previous, 0, sizeof(r->previous));
	for (uint32_t type = 1; type < VS_EVENT_TYPE_LIMIT; type++)
		r->has_place[type] = true;
	for (size_t i = 0; i < m->n_type; i++) {
		const uint32_t type = m->type[i];

		if (!type)
			return false;
		if (type < UINT16_MAX && !r->has_place[type] && n_new < NEW_SLOTS) {
			r->has_place[type] = true;
			n_new++;
		}
		if (type < UINT16_MAX && r->has_place[type])
			r->taken[type]++;
		else
			++*unplaced;
	}
	return true;
}

static bool reference_columns(struct reference *r, const Vcpuscope__Wire__Batch *m, size_t unplaced)
{
	for (size_t i = 0; i < m->n_columns; i++) {
		const Vcpuscope__Wire__Column *c = m->columns[i];
		size_t n;

		if (c->type >= VS_EVENT_TYPE_LIMIT &&
		    (c->type >= UINT16_MAX || !r->has_place[c->type]))
			continue;
		n = c->type ? r->taken[c->type] : unplaced;
		if (r->columns[c->type] || c->predict > 15 || !fits(c->n_pid, n) ||
		    !fits(c->n_pid2, n) || !fits(c->n_arg0, n) || !fits(c->n_arg1, n))
			return false;
		r->columns[c->type] = c;
	}
	memset(r->taken, 0, sizeof(r->taken));
	return true;
}

static uint64_t unzigzag(uint64_t coded)
{
	return coded & 1 ? ~(coded >> 1) : coded >> 1;
}

static void reference_fields(struct reference *r, struct vs_event *e, int32_t *current)
{
	static const Vcpuscope__Wire__Column none = VCPUSCOPE__WIRE__COLUMN__INIT;
	const Vcpuscope__Wire__Column *c = r->columns[e->type] ? r->columns[e->type] : &none;
	const size_t at = r->taken[e->type]++;
	const int32_t pid = c->predict & 1 ? *current : r->previous[e->type].pid;
	int32_t pid2;

	e->pid = (int32_t)((uint32_t)pid + (uint32_t)(c->n_pid ? c->pid[at] : 0));
	if (c->predict & 1)
		*current = e->pid;
	pid2 = c->predict & 2 ? *current : r->previous[e->type].pid2;
	e->pid2 = (int32_t)((uint32_t)pid2 + (uint32_t)(c->n_pid2 ? c->pid2[at] : 0));
	if (c->predict & 2 || e->type == VS_EVENT_SCHED_SWITCH)
		*current = e->pid2;
	e->arg0 = c->n_arg0 ? c->arg0[at] : 0;
	if (c->predict & 4)
		e->arg0 = r->previous[e->type].arg0 + unzigzag(e->arg0);
	e->arg1 = c->n_arg1 ? c->arg1[at] : 0;
	if (c->predict & 8)
		e->arg1 = r->previous[e->type].arg1 + unzigzag(e->arg1);
	r->previous[e->type].pid = e->pid;
	r->previous[e->type].pid2 = e->pid2;
	r->previous[e->type].arg0 = e->arg0;
	r->previous[e->type].arg1 = e->arg1;
}

static bool reference_events(struct reference *r, const Vcpuscope__Wire__Batch *m)
{
	uint64_t time = m->base_time;
	uint32_t seq = m->base_seq;
	int32_t current = 0;
	size_t jump = 0;

	for (size_t i = 0; i < m->n_type; i++) {
		struct vs_event *e = &r->events[i];
		const uint64_t delta = m->time_high[i] << 8 | m->time_low.data[i];

		if (m->time_high[i] >> 56 || time + delta < time)
			return false;
		time += delta;
		if (jump < m->n_seq_jump_index && m->seq_jump_index[jump] == i)
			seq += (uint32_t)m->seq_jump[jump++];
		*e = (struct vs_event){
			.time = time,
			.seq = seq++,
			.cpu = (uint16_t)m->cpu,
			.type = m->type[i] < UINT16_MAX ? (uint16_t)m->type[i] : UINT16_MAX,
		};
		if (e->type < UINT16_MAX && r->has_place[e->type])
			reference_fields(r, e, &current);
	}
	return true;
}

static bool reference_build(struct reference *r, const Vcpuscope__Wire__Batch *m)
{
	size_t unplaced;

	if (m->cpu >= VS_CPUS_MAX || m->n_type > VS_BATCH_EVENTS_MAX ||
	    m->n_time_high != m->n_type || m->time_low.len != m->n_type ||
	    m->n_seq_jump != m->n_seq_jump_index || m->chord_begin > m->chord_end)
		return false;
	for (size_t i = 0; i < m->n_seq_jump_index; i++) {
		if (m->seq_jump_index[i] >= m->n_type ||
		    (i && m->seq_jump_index[i] <= m->seq_jump_index[i - 1]))
			return false;
	}
	if (!reference_types(r, m, &unplaced) || !reference_columns(r, m, unplaced) ||
	    !reference_events(r, m))
		return false;
	r->batch = (struct batch){
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
		.events = r->events,
	};
	return true;
}

/* ---- batches of random shape ---- */

struct bytes {
	uint8_t at[CAPACITY];
	size_t n;
};

static void put_varint(struct bytes *b, uint64_t value, unsigned int longer)
{
	size_t least = 1;

	while (least < 10 && value >> 7 * least)
		least++;
	for (size_t i = 0, n = least + longer < 10 ? least + longer : 10; i < n; i++)
		b->at[b->n++] = (uint8_t)((value >> 7 * i & 0x7f) | (i + 1 < n ? 0x80 : 0));
}

/* Sometimes longer than necessary. */
static void put_value(struct bytes *b, uint64_t value)
{
	put_varint(b, value, random_below(16) ? 0 : (unsigned int)random_below(9));
}

static void put_bytes(struct bytes *b, uint32_t field, const struct bytes *content)
{
	put_varint(b, field << 3 | 2, 0);
	put_varint(b, content->n, 0);
	memcpy(b->at + b->n, content->at, content->n);
	b->n += content->n;
}

static void put_unknown(struct bytes *b)
{
	static const uint8_t types[] = {0, 1, 2, 5};
	const uint8_t type = types[random_below(4)];
	const uint32_t field = 18 + (uint32_t)random_below((1 << 29) - 18);
	const size_t n = type == 1 ? 8 : type == 5 ? 4 : random_below(9);

	put_varint(b, (uint64_t)field << 3 | type, 0);
	if (type == 0)
		put_value(b, random_value());
	if (type == 2)
		put_varint(b, n, 0);
	for (size_t i = 0; type && i < n; i++)
		b->at[b->n++] = (uint8_t)random_below(256);
}

/* Some columns come in pieces, or not packed. No encoder does that; protobuf-c reads it. */
static bool in_pieces;

static void put_packed(struct bytes *b, uint32_t field, size_t n, uint64_t limit)
{
	static struct bytes content;

	content.n = 0;
	for (size_t i = 0; i < n; i++) {
		if (in_pieces && !random_below(64)) {
			put_bytes(b, field, &content);
			content.n = 0;
		}
		if (in_pieces && !random_below(64)) {
			put_varint(b, field << 3, 0);
			put_value(b, random_value() % limit);
			continue;
		}
		put_value(&content, random_value() % limit);
	}
	put_bytes(b, field, &content);
}

struct shape {
	size_t n;
	uint32_t types[TYPES];
	size_t counts[TYPES]; /* events of each */
	uint8_t of[EVENTS];   /* the event's index in types */
};

static void shape_choose(struct shape *s)
{
	*s = (struct shape){.n = random_below(EVENTS)};
	for (size_t i = 0; i < TYPES; i++) {
		const uint32_t far[] = {UINT16_MAX, UINT16_MAX + 1, UINT32_MAX, 4000};

		s->types[i] = random_below(5) ? 1 + (uint32_t)random_below(70) : far[i % 4];
		for (size_t before = 0; before < i; before++) {
			if (s->types[before] == s->types[i])
				s->types[i] = 5000 + (uint32_t)i;
		}
	}
	for (size_t i = 0; i < s->n; i++) {
		s->of[i] = (uint8_t)random_below(TYPES);
		s->counts[s->of[i]]++;
	}
}

static void put_column(struct bytes *b, const struct shape *s, size_t which)
{
	static struct bytes column;

	column.n = 0;
	for (uint32_t field = 6; field >= 3; field--) {
		if (random_below(2))
			put_packed(&column, field, s->counts[which], UINT64_MAX);
		if (!random_below(8))
			put_unknown(&column);
	}
	put_varint(&column, 1 << 3, 0);
	put_value(&column, s->types[which]);
	put_varint(&column, 2 << 3, 0);
	put_value(&column, random_below(16));
	put_bytes(b, 12, &column);
}

static void put_types(struct bytes *b, const struct shape *s)
{
	static struct bytes content;

	content.n = 0;
	for (size_t i = 0; i < s->n; i++)
		put_value(&content, s->types[s->of[i]]);
	put_bytes(b, 9, &content);
}

static void put_low(struct bytes *b, const struct shape *s)
{
	static struct bytes content;

	content.n = s->n;
	for (size_t i = 0; i < s->n; i++)
		content.at[i] = (uint8_t)random_below(256);
	put_bytes(b, 10, &content);
}

static void put_jumps(struct bytes *b, const struct shape *s)
{
	static struct bytes content;
	size_t n = 0;

	content.n = 0;
	for (size_t i = random_below(9); i < s->n; i += 1 + random_below(40), n++)
		put_value(&content, i);
	put_bytes(b, 13, &content);
	put_packed(b, 14, n, UINT64_MAX);
}

static void put_scalar(struct bytes *b, uint32_t field, uint64_t value)
{
	put_varint(b, field << 3, 0);
	put_value(b, value);
}

/* Valid, in an order of fields that no encoder here writes. */
static void batch_write(struct bytes *b)
{
	static const uint32_t fields[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17};
	enum { FIELDS = sizeof(fields) / sizeof(*fields) };
	const size_t first = random_below(FIELDS);
	struct shape s;

	shape_choose(&s);
	b->n = 0;
	for (size_t i = 0; i < FIELDS; i++) {
		const uint32_t field = fields[(first + i) % FIELDS];

		if (!random_below(8))
			put_unknown(b);
		if (field == 9)
			put_types(b, &s);
		else if (field == 10)
			put_low(b, &s);
		else if (field == 11)
			put_packed(b, 11, s.n, 1 << 20);
		else if (field == 13)
			put_jumps(b, &s);
		else if (field == 15)
			put_scalar(b, 16, UINT64_MAX), put_scalar(b, 15, random_value());
		else if (field == 12)
			for (size_t which = 0; which < TYPES; which++)
				put_column(b, &s, which);
		else
			put_scalar(b, field,
				   field == 1 ? random_below(VS_CPUS_MAX) : random_value() >> 8);
	}
}

static void batch_damage(struct bytes *b)
{
	for (size_t n = 1 + random_below(2); n-- && b->n;) {
		const size_t at = random_below(b->n), len = random_below(b->n - at) + 1;

		switch (random_below(10)) {
		case 0:
			b->n = at;
			break;
		case 1:
			b->at[at] = (uint8_t)random_below(256);
			break;
		case 2: /* a varint that does not end */
			memset(b->at + at, 0x80, len < 12 ? len : 12);
			break;
		case 3:
			memmove(b->at + at, b->at + at + len, b->n - at - len);
			b->n -= len;
			break;
		case 4: /* a part twice */
			if (b->n + len > CAPACITY / 2)
				break;
			memmove(b->at + at + len, b->at + at, b->n - at);
			b->n += len;
			break;
		default:
			b->at[at] ^= (uint8_t)(1 << random_below(8));
		}
	}
}

/* ---- the comparison ---- */

struct fixture {
	struct batch_decoder *decoder;
	struct reference *reference;
	size_t accepted, refused, packed_anew;
};

static void assert_batch_equal(const struct batch *a, const struct batch *b)
{
	assert_int_equal(a->cpu, b->cpu);
	assert_true(a->time_err == b->time_err && a->watermark == b->watermark);
	assert_true(a->emitted == b->emitted && a->dropped_kernel == b->dropped_kernel);
	assert_true(a->dropped_user == b->dropped_user && a->tsc_cpu == b->tsc_cpu);
	assert_true(a->chord_begin == b->chord_begin && a->chord_end == b->chord_end);
	assert_int_equal(a->n_events, b->n_events);
	assert_memory_equal(a->events, b->events, a->n_events * sizeof(*a->events));
}

/* protobuf-c refuses the number 0 only if its tag is one byte long. */
static bool has_number_0(const ProtobufCMessage *m)
{
	for (unsigned int i = 0; i < m->n_unknown_fields; i++) {
		if (!m->unknown_fields[i].tag)
			return true;
	}
	return false;
}

static bool any_number_0(const Vcpuscope__Wire__Batch *m)
{
	for (size_t i = 0; i < m->n_columns; i++) {
		if (has_number_0(&m->columns[i]->base))
			return true;
	}
	return has_number_0(&m->base);
}

/* Returns whether the reference accepts the payload. */
static bool compare(struct fixture *f, const struct bytes *payload, bool must_agree)
{
	Vcpuscope__Wire__Batch *m = vcpuscope__wire__batch__unpack(NULL, payload->n, payload->at);
	const bool good = m && reference_build(f->reference, m);
	/* At its size, so that a sanitizer sees each byte that is read behind it. */
	uint8_t *exact = malloc(payload->n + 1);
	struct batch out;
	int err;

	memcpy(exact, payload->at, payload->n);
	err = batch_decode(f->decoder, exact, payload->n, &out);
	assert_true(err == 0 || err == -EBADMSG || err == -E2BIG);
	if (!err) {
		assert_true(good);
		assert_batch_equal(&out, &f->reference->batch);
	} else if (good && !any_number_0(m)) {
		static struct bytes again;

		assert_false(must_agree);
		again.n = vcpuscope__wire__batch__get_packed_size(m);
		assert_true(again.n <= CAPACITY);
		vcpuscope__wire__batch__pack(m, again.at);
		assert_int_equal(batch_decode(f->decoder, again.at, again.n, &out), 0);
		assert_batch_equal(&out, &f->reference->batch);
		f->packed_anew++;
	}
	f->accepted += !err;
	f->refused += !good;
	if (m)
		vcpuscope__wire__batch__free_unpacked(m, NULL);
	free(exact);
	return good;
}

static void test_the_decoder_agrees_with_protobuf(void **state)
{
	static struct bytes valid, damaged;
	struct fixture f = {
		.decoder = batch_decoder_new(),
		.reference = calloc(1, sizeof(struct reference)),
	};

	(void)state;
	assert_true(f.decoder && f.reference);
	for (int run = 0; run < RUNS; run++) {
		in_pieces = run % 4 == 3;
		batch_write(&valid);
		assert_true(compare(&f, &valid, !in_pieces));
		for (int i = 0; i < DAMAGES; i++) {
			memcpy(damaged.at, valid.at, valid.n);
			damaged.n = valid.n;
			batch_damage(&damaged);
			compare(&f, &damaged, false);
		}
	}
	print_message("%zu accepted, %zu refused by both, %zu only after packing anew\n",
		      f.accepted, f.refused, f.packed_anew);
	/* Each kind has come up. */
	assert_true(f.accepted > 2 * RUNS && f.refused > RUNS && f.packed_anew > RUNS / 8);
	batch_decoder_free(f.decoder);
	free(f.reference);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_decoder_agrees_with_protobuf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
