// SPDX-License-Identifier: GPL-2.0-only
/* Tests the batch codec: decoding returns exactly the encoded events. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/message.h"
#include "wire.pb-c.h"

static const uint16_t all_types[] = {
#define EVENT(number, ...) number,
#include "proto/events.def"
};
enum { N_TYPES = sizeof(all_types) / sizeof(*all_types) };

struct fixture {
	struct batch_encoder *encoder;
	struct batch_decoder *decoder;
	struct byte_buffer out;
	struct vs_event *events; /* VS_BATCH_EVENTS_MAX + 1 of them */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->encoder = batch_encoder_new();
	f->decoder = batch_decoder_new();
	f->events = calloc(VS_BATCH_EVENTS_MAX + 1, sizeof(*f->events));
	*state = f;
	return f->encoder && f->decoder && f->events ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	batch_encoder_free(f->encoder);
	batch_decoder_free(f->decoder);
	byte_buffer_fini(&f->out);
	free(f->events);
	free(f);
	return 0;
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void assert_event_equal(const struct vs_event *a, const struct vs_event *b)
{
	assert_true(a->time == b->time);
	assert_int_equal(a->seq, b->seq);
	assert_int_equal(a->cpu, b->cpu);
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->pid2, b->pid2);
	assert_true(a->arg0 == b->arg0);
	assert_true(a->arg1 == b->arg1);
}

/* The encoder writes what protobuf-c writes. */
static void assert_as_protobuf_c(const struct byte_buffer *packed)
{
	Vcpuscope__Wire__Batch *m = vcpuscope__wire__batch__unpack(NULL, packed->len, packed->data);
	struct byte_buffer again = {0};

	assert_non_null(m);
	assert_int_equal(vcpuscope__wire__batch__get_packed_size(m), packed->len);
	assert_int_equal(byte_buffer_reserve(&again, packed->len), 0);
	assert_int_equal(vcpuscope__wire__batch__pack(m, again.data), packed->len);
	assert_memory_equal(again.data, packed->data, packed->len);
	byte_buffer_fini(&again);
	vcpuscope__wire__batch__free_unpacked(m, NULL);
}

static void assert_round_trip(struct fixture *f, const struct batch *in)
{
	struct batch out;

	f->out.len = 0;
	assert_int_equal(batch_encode(f->encoder, in, &f->out), 0);
	assert_as_protobuf_c(&f->out);
	assert_int_equal(batch_decode(f->decoder, f->out.data, f->out.len, &out), 0);
	assert_int_equal(out.cpu, in->cpu);
	assert_true(out.time_err == in->time_err);
	assert_true(out.watermark == in->watermark);
	assert_true(out.emitted == in->emitted);
	assert_true(out.dropped_kernel == in->dropped_kernel);
	assert_true(out.dropped_user == in->dropped_user);
	assert_int_equal(out.n_events, in->n_events);
	for (size_t i = 0; i < in->n_events; i++)
		assert_event_equal(&out.events[i], &in->events[i]);
}

static void test_empty_batch_carries_its_counters(void **state)
{
	struct batch b = {.cpu = 3,
			  .time_err = 11,
			  .watermark = UINT64_MAX,
			  .emitted = 1,
			  .dropped_kernel = 2,
			  .dropped_user = UINT64_MAX};

	assert_round_trip(*state, &b);
	b = (struct batch){0};
	assert_round_trip(*state, &b);
}

static void test_every_type_alone_with_extreme_values(void **state)
{
	static const struct {
		int32_t pid, pid2;
		uint64_t arg0, arg1;
	} values[] = {
		{0, 0, 0, 0},
		{1, 0, 0, 0},
		{0, 1, 0, 0},
		{0, 0, 1, 0},
		{0, 0, 0, 1},
		{INT32_MAX, INT32_MIN, UINT64_MAX, 0},
		{INT32_MIN, INT32_MAX, 0, UINT64_MAX},
		{-1, -1, UINT64_MAX, UINT64_MAX},
		{INT32_MIN, INT32_MIN, (uint64_t)1 << 63, (uint64_t)1 << 63},
	};
	enum { N_VALUES = sizeof(values) / sizeof(*values) };
	struct fixture *f = *state;

	for (size_t t = 0; t < N_TYPES; t++) {
		/* Every value after every other, so that each difference is made. */
		struct batch b = {.cpu = VS_CPUS_MAX - 1, .events = f->events};

		for (size_t i = 0; i < N_VALUES; i++)
			for (size_t j = 0; j < N_VALUES; j++)
				for (size_t k = 0; k < 2; k++) {
					size_t v = k ? j : i;

					f->events[b.n_events] = (struct vs_event){
						.time = b.n_events * 1000,
						.seq = (uint32_t)b.n_events,
						.cpu = b.cpu,
						.type = all_types[t],
						.pid = values[v].pid,
						.pid2 = values[v].pid2,
						.arg0 = values[v].arg0,
						.arg1 = values[v].arg1,
					};
					b.n_events++;
				}
		assert_round_trip(f, &b);
	}
}

static void test_times_keep_every_bit(void **state)
{
	static const uint64_t times[] = {
		0,
		0,
		1,
		255,
		256,
		257,
		65535,
		65536,
		1u << 31,
		(uint64_t)1 << 56,
		UINT64_MAX - 1,
		UINT64_MAX,
		UINT64_MAX,
	};
	struct fixture *f = *state;
	struct batch b = {.events = f->events, .n_events = sizeof(times) / sizeof(*times)};

	for (size_t i = 0; i < b.n_events; i++)
		f->events[i] = (struct vs_event){
			.time = times[i], .seq = (uint32_t)i, .type = VS_EVENT_SOFTIRQ_ENTRY};
	assert_round_trip(f, &b);
	b.n_events = 1;
	f->events[0].time = UINT64_MAX;
	assert_round_trip(f, &b);
}

static void test_sequence_jumps_survive(void **state)
{
	static const uint32_t seqs[] = {
		7, 8, 10, 9, 11, 1000000, 1000001, UINT32_MAX, 0, 1, 0x80000000, 0, 0, 0x7fffffff,
	};
	struct fixture *f = *state;
	struct batch b = {.events = f->events, .n_events = sizeof(seqs) / sizeof(*seqs)};

	for (size_t i = 0; i < b.n_events; i++)
		f->events[i] =
			(struct vs_event){.time = i, .seq = seqs[i], .type = VS_EVENT_SCHED_SWITCH};
	assert_round_trip(f, &b);
}

static void test_random_full_batches_survive(void **state)
{
	struct fixture *f = *state;
	uint64_t seed = 88172645463325252u;

	for (int round = 0; round < 8; round++) {
		struct batch b = {.cpu = (uint16_t)round,
				  .events = f->events,
				  .n_events = VS_BATCH_EVENTS_MAX,
				  .emitted = next_random(&seed)};
		uint64_t time = next_random(&seed) >> 1;
		unsigned shift = (unsigned)round * 8;

		for (size_t i = 0; i < b.n_events; i++) {
			time += next_random(&seed) >> 14 >> shift % 50;
			f->events[i] = (struct vs_event){
				.time = time,
				.seq = (uint32_t)(i + (next_random(&seed) % 100 == 0)),
				.cpu = b.cpu,
				.type = all_types[next_random(&seed) % N_TYPES],
				.pid = (int32_t)(next_random(&seed) >> 32 >> shift % 32),
				.pid2 = (int32_t)(next_random(&seed) >> 32 >> shift % 32),
				.arg0 = next_random(&seed) >> shift,
				.arg1 = next_random(&seed) >> shift,
			};
		}
		assert_round_trip(f, &b);
	}
}

static void test_the_largest_batch_fits_a_frame(void **state)
{
	struct fixture *f = *state;
	struct batch b = {
		.events = f->events, .n_events = VS_BATCH_EVENTS_MAX, .watermark = UINT64_MAX};
	struct frame_writer *w = frame_writer_new(1);
	struct byte_buffer frame = {0};
	uint64_t seed = 42;

	assert_non_null(w);
	for (size_t i = 0; i < b.n_events; i++)
		f->events[i] = (struct vs_event){
			.time = (i + 1) * (UINT64_MAX / VS_BATCH_EVENTS_MAX) -
				(next_random(&seed) >> 16),
			.seq = (uint32_t)next_random(&seed),
			.type = all_types[next_random(&seed) % N_TYPES],
			.pid = (int32_t)next_random(&seed),
			.pid2 = (int32_t)next_random(&seed),
			.arg0 = next_random(&seed) | (uint64_t)1 << 63,
			.arg1 = next_random(&seed) | (uint64_t)1 << 63,
		};
	assert_round_trip(f, &b);
	assert_int_equal(frame_write(w, FRAME_BATCH, f->out.data, f->out.len, &frame), 0);
	byte_buffer_fini(&frame);
	frame_writer_free(w);
}

static void test_what_event_h_forbids_is_not_encoded(void **state)
{
	struct fixture *f = *state;
	struct vs_event good[2] = {
		{.time = 5, .seq = 0, .cpu = 1, .type = VS_EVENT_SCHED_SWITCH},
		{.time = 6, .seq = 1, .cpu = 1, .type = VS_EVENT_SCHED_SWITCH},
	};
	struct batch b = {.cpu = 1, .events = good, .n_events = 2};

	assert_round_trip(f, &b);
	f->out.len = 0;
	good[1].cpu = 2;
	assert_int_equal(batch_encode(f->encoder, &b, &f->out), -EINVAL);
	good[1].cpu = 1;
	good[1].time = 4;
	assert_int_equal(batch_encode(f->encoder, &b, &f->out), -EINVAL);
	good[1].time = 5;
	good[1].type = VS_EVENT_NONE;
	assert_int_equal(batch_encode(f->encoder, &b, &f->out), -EINVAL);
	good[1].type = 31;
	assert_int_equal(batch_encode(f->encoder, &b, &f->out), -EINVAL);
	good[1].type = VS_EVENT_TYPE_LIMIT;
	assert_int_equal(batch_encode(f->encoder, &b, &f->out), -EINVAL);
	assert_int_equal(f->out.len, 0);

	b = (struct batch){.events = f->events, .n_events = VS_BATCH_EVENTS_MAX + 1};
	assert_int_equal(batch_encode(f->encoder, &b, &f->out), -E2BIG);
	assert_int_equal(f->out.len, 0);
}

/* A hand-made wire message, for what our own encoder never writes. */
struct wire_case {
	Vcpuscope__Wire__Batch batch;
	Vcpuscope__Wire__Column column, second;
	Vcpuscope__Wire__Column *columns[2];
	uint32_t type[3], jump_index[3];
	uint64_t time_high[3], arg0[3];
	uint8_t time_low[3];
	int32_t pid[3], jump[3];
};

static void wire_case_init(struct wire_case *c)
{
	memset(c, 0, sizeof(*c));
	vcpuscope__wire__batch__init(&c->batch);
	vcpuscope__wire__column__init(&c->column);
	vcpuscope__wire__column__init(&c->second);
	c->type[0] = c->type[1] = c->type[2] = 63; /* not in event.h: a newer peer's */
	c->batch.type = c->type;
	c->batch.time_high = c->time_high;
	c->batch.time_low.data = c->time_low;
	c->batch.n_type = c->batch.n_time_high = c->batch.time_low.len = 3;
	c->batch.seq_jump_index = c->jump_index;
	c->batch.seq_jump = c->jump;
	c->column.type = 63;
	c->column.pid = c->pid;
	c->column.n_pid = 3;
	c->column.arg0 = c->arg0;
	c->pid[0] = 40;
	c->pid[1] = c->pid[2] = 1;
	c->second.type = 62;
	c->columns[0] = &c->column;
	c->columns[1] = &c->second;
	c->batch.columns = c->columns;
	c->batch.n_columns = 1;
}

static int wire_case_decode(struct fixture *f, const struct wire_case *c, struct batch *out)
{
	size_t len = protobuf_c_message_get_packed_size(&c->batch.base);

	f->out.len = 0;
	assert_int_equal(byte_buffer_reserve(&f->out, len), 0);
	f->out.len = protobuf_c_message_pack(&c->batch.base, f->out.data);
	return batch_decode(f->decoder, f->out.data, f->out.len, out);
}

static void test_a_newer_peers_events_are_kept(void **state)
{
	struct fixture *f = *state;
	struct wire_case c;
	struct batch out;
	static const uint8_t unknown_fields[] = {
		0xfa, 0x3f, 0x03, 'n', 'e', 'w', /* field 1023, bytes */
		0xf0, 0x3f, 0x7f,                /* field 1022, varint */
	};

	wire_case_init(&c);
	assert_int_equal(wire_case_decode(f, &c, &out), 0);
	assert_int_equal(out.n_events, 3);
	assert_int_equal(out.events[0].type, 63);
	assert_int_equal(out.events[2].pid, 42);
	assert_int_equal(byte_buffer_append(&f->out, unknown_fields, sizeof(unknown_fields)), 0);
	assert_int_equal(batch_decode(f->decoder, f->out.data, f->out.len, &out), 0);
	assert_int_equal(out.n_events, 3);
	assert_int_equal(out.events[2].pid, 42);
}

static void test_a_type_of_any_number_costs_its_batch_nothing(void **state)
{
	static const uint32_t numbers[] = {64, 66, 127, 128, 1000, 65534, 65535, 65536, UINT32_MAX};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		struct wire_case c;
		struct batch out;

		wire_case_init(&c);
		c.type[1] = numbers[i];
		c.column.n_pid = 2;
		c.second.type = numbers[i];
		c.second.arg0 = c.arg0;
		c.second.n_arg0 = 1;
		c.arg0[0] = 9;
		c.batch.n_columns = 2;
		assert_int_equal(wire_case_decode(f, &c, &out), 0);
		assert_int_equal(out.n_events, 3);
		assert_int_equal(out.events[1].type, numbers[i] < 65535 ? numbers[i] : 65535);
		assert_int_equal(out.events[1].arg0, numbers[i] < 65535 ? 9 : 0);
		assert_int_equal(out.events[1].seq, 1);
		assert_int_equal(out.events[2].pid, 41);
		assert_int_equal(out.events[2].seq, 2);
	}
}

/* What a relay encodes is what it was given, but for the fields of types that have no place. */
static void test_a_relay_keeps_a_newer_peers_types(void **state)
{
	struct fixture *f = *state;
	struct batch b = {.cpu = 2, .events = f->events, .n_events = VS_BATCH_EVENTS_MAX};
	uint64_t seed = 17;

	batch_encoder_relay(f->encoder);
	for (size_t kinds = 1; kinds <= 192; kinds += 191) {
		for (size_t i = 0; i < b.n_events; i++)
			f->events[i] = (struct vs_event){
				.time = i * 9,
				.seq = (uint32_t)(i + i / 50),
				.cpu = 2,
				.type = (uint16_t)(i % 3 ? all_types[i % N_TYPES]
							 : 64 + i % kinds * 341),
				.pid = (int32_t)next_random(&seed),
				.pid2 = (int32_t)next_random(&seed),
				.arg0 = next_random(&seed),
				.arg1 = next_random(&seed),
			};
		assert_round_trip(f, &b);
	}
	for (size_t i = 0; i < b.n_events; i++)
		f->events[i] = (struct vs_event){
			.time = i, .seq = (uint32_t)i, .cpu = 2, .type = (uint16_t)(64 + i * 7)};
	assert_round_trip(f, &b);
	/* From a full table to an empty one. */
	b.n_events = 1;
	f->events[0].arg1 = 5;
	assert_round_trip(f, &b);
}

/* wire.proto's words on `predict`, in numbers, without our encoder. */
static void test_predictions_mean_what_wire_proto_says(void **state)
{
	static const struct {
		uint32_t predict;
		int32_t pid[3], pid2[3];
		uint64_t arg0[3], arg1[3];
	} cases[] = {
		/* Sent: pid 10, 1, -4; pid2 5, 0, -1; arg0 and arg1 6, 1, 4. */
		{0, {10, 11, 7}, {5, 5, 4}, {6, 1, 4}, {6, 1, 4}},
		{1, {10, 11, 7}, {5, 5, 4}, {6, 1, 4}, {6, 1, 4}},
		{2, {10, 11, 7}, {5, 5, 4}, {6, 1, 4}, {6, 1, 4}},
		{3, {10, 16, 12}, {15, 16, 11}, {6, 1, 4}, {6, 1, 4}},
		{4, {10, 11, 7}, {5, 5, 4}, {3, 2, 4}, {6, 1, 4}},
		{8, {10, 11, 7}, {5, 5, 4}, {6, 1, 4}, {3, 2, 4}},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int32_t pid2[3] = {5, 0, -1};
		uint64_t arg1[3] = {6, 1, 4};
		struct wire_case c;
		struct batch out;

		wire_case_init(&c);
		c.column.predict = cases[i].predict;
		c.pid[0] = 10, c.pid[1] = 1, c.pid[2] = -4;
		memcpy(c.arg0, arg1, sizeof(arg1));
		c.column.pid2 = pid2;
		c.column.arg1 = arg1;
		c.column.n_pid2 = c.column.n_arg0 = c.column.n_arg1 = 3;
		assert_int_equal(wire_case_decode(f, &c, &out), 0);
		for (size_t e = 0; e < 3; e++) {
			assert_int_equal(out.events[e].pid, cases[i].pid[e]);
			assert_int_equal(out.events[e].pid2, cases[i].pid2[e]);
			assert_int_equal(out.events[e].arg0, cases[i].arg0[e]);
			assert_int_equal(out.events[e].arg1, cases[i].arg1[e]);
		}
	}
}

static void test_naming_the_current_task_costs_nothing(void **state)
{
	static const uint16_t types[] = {VS_EVENT_SOFTIRQ_ENTRY, VS_EVENT_SOFTIRQ_EXIT,
					 VS_EVENT_VECTOR_ENTRY, VS_EVENT_IRQ_ENTRY};
	struct fixture *f = *state;
	size_t len[2];

	for (int far = 0; far < 2; far++) {
		struct batch b = {.events = f->events, .n_events = 4000};
		int32_t task = far ? INT32_MAX : 0;

		for (size_t i = 0; i < b.n_events; i++)
			f->events[i] = (struct vs_event){.time = i,
							 .seq = (uint32_t)i,
							 .type = types[i % 4],
							 .pid = i ? task : 0};
		f->events[0].type = VS_EVENT_SCHED_SWITCH;
		f->events[0].pid2 = task;
		assert_round_trip(f, &b);
		len[far] = f->out.len;
	}
	assert_true(len[1] <= len[0] + 10);
}

#define BAD(name, expected, change)                                                                \
	static int name(struct wire_case *c)                                                       \
	{                                                                                          \
		change;                                                                            \
		return expected;                                                                   \
	}
BAD(bad_type_none, -EBADMSG, c->type[1] = 0)
BAD(bad_cpu, -E2BIG, c->batch.cpu = VS_CPUS_MAX)
BAD(bad_cpu_huge, -E2BIG, c->batch.cpu = UINT32_MAX)
BAD(bad_few_times, -EBADMSG, c->batch.n_time_high = 2)
BAD(bad_few_low_times, -EBADMSG, c->batch.time_low.len = 2)
BAD(bad_time_bits, -EBADMSG, c->time_high[1] = (uint64_t)1 << 56)
BAD(bad_time_overflow, -EBADMSG, c->batch.base_time = UINT64_MAX; c->time_low[2] = 1)
BAD(bad_column_short, -EBADMSG, c->column.n_pid = 2)
BAD(bad_column_arg_short, -EBADMSG, c->column.n_arg0 = 1)
BAD(bad_column_type, -EBADMSG, c->column.type = 64; c->type[1] = 64)
BAD(bad_column_of_no_event, -EBADMSG, c->column.type = VS_EVENT_KVM_ACK_IRQ)
BAD(bad_column_twice, -EBADMSG, c->second.type = 63; c->batch.n_columns = 2)
BAD(bad_predict, -EBADMSG, c->column.predict = 16)
BAD(bad_jump_alone, -EBADMSG, c->batch.n_seq_jump = 1)
BAD(bad_jump_index, -EBADMSG, c->jump_index[0] = 3;
    c->batch.n_seq_jump = c->batch.n_seq_jump_index = 1)
BAD(bad_jump_order, -EBADMSG, c->jump_index[0] = c->jump_index[1] = 1;
    c->batch.n_seq_jump = c->batch.n_seq_jump_index = 2)
#undef BAD

static void test_contradictory_batches_are_rejected(void **state)
{
	static int (*const cases[])(struct wire_case *) = {
		bad_type_none,        bad_cpu,         bad_cpu_huge,           bad_few_times,
		bad_few_low_times,    bad_time_bits,   bad_time_overflow,      bad_column_short,
		bad_column_arg_short, bad_column_type, bad_column_of_no_event, bad_column_twice,
		bad_predict,          bad_jump_alone,  bad_jump_index,         bad_jump_order,
	};
	struct fixture *f = *state;
	struct batch out;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wire_case c;
		int expected;

		wire_case_init(&c);
		expected = cases[i](&c);
		assert_int_equal(wire_case_decode(f, &c, &out), expected);
	}
}

static void test_too_many_events_are_rejected(void **state)
{
	struct fixture *f = *state;
	struct wire_case c;
	struct batch out;
	uint32_t *type = calloc(VS_BATCH_EVENTS_MAX + 1, sizeof(*type));
	uint64_t *high = calloc(VS_BATCH_EVENTS_MAX + 1, sizeof(*high));
	uint8_t *low = calloc(VS_BATCH_EVENTS_MAX + 1, 1);

	for (size_t i = 0; i <= VS_BATCH_EVENTS_MAX; i++)
		type[i] = 2;
	wire_case_init(&c);
	c.batch.n_columns = 0;
	c.batch.type = type;
	c.batch.time_high = high;
	c.batch.time_low.data = low;
	c.batch.n_type = c.batch.n_time_high = c.batch.time_low.len = VS_BATCH_EVENTS_MAX;
	assert_int_equal(wire_case_decode(f, &c, &out), 0);
	assert_int_equal(out.n_events, VS_BATCH_EVENTS_MAX);
	c.batch.n_type = c.batch.n_time_high = c.batch.time_low.len = VS_BATCH_EVENTS_MAX + 1;
	assert_int_equal(wire_case_decode(f, &c, &out), -E2BIG);
	free(type);
	free(high);
	free(low);
}

/* Two wire bytes ask for a struct each: what would be 80 MB of memory must be refused instead. */
static void test_memory_amplification_is_refused(void **state)
{
	struct fixture *f = *state;
	uint8_t *payload = malloc(VS_FRAME_RAW_MAX);
	struct batch out;

	for (size_t i = 0; i < VS_FRAME_RAW_MAX; i += 2) {
		payload[i] = 12 << 3 | 2; /* Batch.columns, of length 0 */
		payload[i + 1] = 0;
	}
	assert_int_equal(batch_decode(f->decoder, payload, VS_FRAME_RAW_MAX, &out), -E2BIG);
	payload[0] = 14 << 3 | 2; /* Batch.seq_jump, one packed byte per element */
	payload[1] = 0xfc, payload[2] = 0xff, payload[3] = 0x3f;
	memset(payload + 4, 1, VS_FRAME_RAW_MAX - 4);
	assert_int_equal(batch_decode(f->decoder, payload, VS_FRAME_RAW_MAX, &out), -E2BIG);
	free(payload);
}

static void test_every_truncation_is_survived(void **state)
{
	struct fixture *f = *state;
	struct batch b = {.cpu = 1, .events = f->events, .n_events = N_TYPES}, out;

	for (size_t i = 0; i < N_TYPES; i++)
		f->events[i] = (struct vs_event){.time = i * 300,
						 .seq = (uint32_t)i * 2,
						 .cpu = 1,
						 .type = all_types[i],
						 .pid = (int32_t)i * 100,
						 .pid2 = (int32_t)i * 300,
						 .arg0 = i,
						 .arg1 = i << 32};
	assert_round_trip(f, &b);
	for (size_t len = 0; len < f->out.len; len++) {
		uint8_t *exact = malloc(len + 1);
		int err;

		memcpy(exact, f->out.data, len);
		err = batch_decode(f->decoder, exact, len, &out);
		assert_true(err == 0 || err == -EBADMSG);
		if (!err)
			assert_true(out.n_events == 0 || out.n_events == N_TYPES);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty_batch_carries_its_counters, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_every_type_alone_with_extreme_values, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_times_keep_every_bit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sequence_jumps_survive, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random_full_batches_survive, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_largest_batch_fits_a_frame, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_what_event_h_forbids_is_not_encoded, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_newer_peers_events_are_kept, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_type_of_any_number_costs_its_batch_nothing,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_relay_keeps_a_newer_peers_types, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_predictions_mean_what_wire_proto_says, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_naming_the_current_task_costs_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_contradictory_batches_are_rejected, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_too_many_events_are_rejected, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_amplification_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_every_truncation_is_survived, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
