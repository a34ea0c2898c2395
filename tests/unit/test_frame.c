// SPDX-License-Identifier: GPL-2.0-only
/* Tests the frame reader: it finds exactly the valid frames of any stream. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/bytes.h"
#include "proto/frame.h"
#include "proto/internal.h"

static const uint64_t SESSION = 0x1234567890abcdef;

struct stream {
	struct frame_writer *writer;
	struct byte_buffer bytes;
	size_t n;
	size_t end[64]; /* where each frame ends */
};

static void stream_init(struct stream *s)
{
	*s = (struct stream){.writer = frame_writer_new(SESSION)};
	assert_non_null(s->writer);
}

static void stream_add(struct stream *s, enum frame_kind kind, const void *payload, size_t len)
{
	assert_int_equal(frame_write(s->writer, kind, payload, len, &s->bytes), 0);
	s->end[s->n++] = s->bytes.len;
}

/* Small frames of three kinds; the payload's first byte is the frame's number. */
static void stream_fill(struct stream *s, size_t n)
{
	stream_init(s);
	for (size_t i = 0; i < n; i++) {
		uint8_t payload[200];

		memset(payload, (int)i, sizeof(payload));
		stream_add(s, FRAME_HEARTBEAT, payload, i % 3 == 2 ? sizeof(payload) : 5 + i);
	}
}

static void stream_fini(struct stream *s)
{
	frame_writer_free(s->writer);
	byte_buffer_fini(&s->bytes);
}

/* Reads all frames, pushing `step` bytes at a time; bit i of the result: frame_seq i was seen. */
static uint64_t read_all(const uint8_t *bytes, size_t len, size_t step,
			 struct frame_reader_stats *stats)
{
	struct frame_unpacker *u = frame_unpacker_new();
	struct frame_reader r;
	uint64_t seen = 0;

	assert_non_null(u);
	frame_reader_init(&r);
	for (size_t at = 0; at < len; at += step) {
		struct frame_view frame;
		size_t n = len - at < step ? len - at : step;
		uint8_t *exact = malloc(n);

		memcpy(exact, bytes + at, n);
		assert_int_equal(frame_reader_push(&r, exact, n), 0);
		free(exact);
		while (frame_reader_next(&r, &frame)) {
			const uint8_t *payload;
			size_t payload_len;

			assert_true(frame.header.session_id == SESSION);
			assert_int_equal(frame_unpack(u, &frame, &payload, &payload_len), 0);
			for (size_t i = 0; i < payload_len; i++)
				assert_int_equal(payload[i], frame.header.frame_seq);
			assert_false(seen & (uint64_t)1 << frame.header.frame_seq);
			seen |= (uint64_t)1 << frame.header.frame_seq;
		}
	}
	*stats = r.stats;
	frame_reader_fini(&r);
	frame_unpacker_free(u);
	return seen;
}

static void test_crc_is_crc32c(void **state)
{
	uint8_t bytes[300];

	(void)state;
	/* The check value of the CRC catalogues, and RFC 3720 B.4's 32 zeros. */
	assert_int_equal(frame_crc32c(0, "123456789", 9), 0xe3069283);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(frame_crc32c(0, bytes, 32), 0x8a9136aa);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 31);
	for (size_t len = 0; len < sizeof(bytes); len++) {
		uint32_t whole = frame_crc32c(0, bytes, len);

		assert_int_equal(whole, ~crc32c_table(~0u, bytes, len));
		assert_int_equal(whole, frame_crc32c(frame_crc32c(0, bytes, len / 3),
						     bytes + len / 3, len - len / 3));
	}
}

static void test_payloads_come_back(void **state)
{
	static const size_t sizes[] = {0, 1, 127, 128, 129, 1000, 65536, VS_FRAME_RAW_MAX};
	struct frame_unpacker *u = frame_unpacker_new();
	uint8_t *payload = malloc(VS_FRAME_RAW_MAX + 1);
	struct stream s;

	(void)state;
	for (size_t i = 0; i < VS_FRAME_RAW_MAX + 1; i++)
		payload[i] = (uint8_t)(i / 1000);
	stream_init(&s);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct frame_view frame;
		const uint8_t *raw;
		size_t len;

		s.bytes.len = 0;
		stream_add(&s, FRAME_BATCH, payload, sizes[i]);
		assert_int_equal(frame_parse(s.bytes.data, s.bytes.len, &frame), 0);
		assert_int_equal(frame.len, s.bytes.len);
		assert_int_equal(frame.header.version, VS_FRAME_VERSION);
		assert_int_equal(frame.header.kind, FRAME_BATCH);
		assert_int_equal(frame.header.frame_seq, i);
		assert_int_equal(frame.header.flags, sizes[i] >= 128 ? VS_FRAME_ZSTD : 0);
		assert_int_equal(frame_unpack(u, &frame, &raw, &len), 0);
		assert_int_equal(len, sizes[i]);
		assert_memory_equal(raw, payload, len);
	}
	s.bytes.len = 0;
	assert_int_equal(
		frame_write(s.writer, FRAME_BATCH, payload, VS_FRAME_RAW_MAX + 1, &s.bytes),
		-E2BIG);
	assert_int_equal(s.bytes.len, 0);
	stream_fini(&s);
	free(payload);
	frame_unpacker_free(u);
}

/* Noise that needs 7 bits, then text: apart they are smaller, and they come back as one. */
static void test_parts_come_back_and_are_smaller(void **state)
{
	enum { PART = 4000, LEN = 12000 };
	struct stream s;
	struct frame_unpacker *u = frame_unpacker_new();
	uint8_t *payload = malloc(LEN);
	size_t whole, out_len;
	uint32_t random = 1;

	(void)state;
	stream_init(&s);
	for (size_t i = 0; i < LEN; i++) {
		random = random * 1664525 + 1013904223;
		payload[i] = (uint8_t)(i < PART ? random >> 24 & ~1u : 'a' + (random >> 30));
	}
	stream_add(&s, FRAME_BATCH, payload, LEN);
	whole = s.bytes.len;
	for (size_t part = 0; part <= LEN; part += PART) {
		const size_t begin = s.bytes.len;
		const uint8_t *out;
		struct frame_view frame;

		assert_int_equal(
			frame_write_parted(s.writer, FRAME_BATCH, payload, LEN, part, &s.bytes), 0);
		assert_int_equal(frame_parse(s.bytes.data + begin, s.bytes.len - begin, &frame), 0);
		assert_int_equal(frame_unpack(u, &frame, &out, &out_len), 0);
		assert_int_equal(out_len, LEN);
		assert_memory_equal(out, payload, LEN);
		if (part == PART)
			assert_true(frame.len < whole - whole / 20);
		else if (part == 0 || part == LEN)
			assert_int_equal(frame.len, whole);
	}
	free(payload);
	frame_unpacker_free(u);
	stream_fini(&s);
}

static void test_any_chunking_gives_the_same_frames(void **state)
{
	struct frame_reader_stats stats;
	struct stream s;

	(void)state;
	stream_fill(&s, 9);
	for (size_t step = 1; step <= s.bytes.len; step++) {
		assert_int_equal(read_all(s.bytes.data, s.bytes.len, step, &stats), (1 << 9) - 1);
		assert_int_equal(stats.frames, 9);
		assert_int_equal(stats.skipped_bytes, 0);
		assert_int_equal(stats.resyncs, 0);
	}
	stream_fini(&s);
}

static void test_garbage_between_frames_costs_nothing(void **state)
{
	static const char *const garbage[] = {
		"x",
		"VCSF",
		"VCSFVCSFVCSF",
		"VCS",
		"V",
		"VVVVCSF\x01",
		"VCSE is another magic",
		"VCSF\x01\x02 a header that is none, long enough to be looked at as one .........",
		"VCSF\x02 another version",
	};
	struct frame_reader_stats stats;
	struct stream s;

	(void)state;
	stream_fill(&s, 6);
	for (size_t g = 0; g < sizeof(garbage) / sizeof(*garbage); g++)
		for (size_t before = 0; before < 6; before++)
			for (size_t step = 1; step < 4000; step *= 15) {
				struct byte_buffer b = {0};
				size_t at = before ? s.end[before - 1] : 0;

				byte_buffer_append(&b, s.bytes.data, at);
				byte_buffer_append(&b, garbage[g], strlen(garbage[g]));
				byte_buffer_append(&b, s.bytes.data + at, s.bytes.len - at);
				assert_int_equal(read_all(b.data, b.len, step, &stats), 63);
				assert_int_equal(stats.skipped_bytes, strlen(garbage[g]));
				assert_int_equal(stats.resyncs, 1);
				byte_buffer_fini(&b);
			}
	stream_fini(&s);
}

static void test_every_flipped_bit_costs_one_frame(void **state)
{
	struct frame_reader_stats stats;
	struct stream s;

	(void)state;
	stream_fill(&s, 6);
	for (size_t bit = 0; bit < s.bytes.len * 8; bit++) {
		uint64_t seen;
		size_t hit = 0;

		while (bit / 8 >= s.end[hit])
			hit++;
		s.bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		seen = read_all(s.bytes.data, s.bytes.len, 100, &stats);
		s.bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(seen, 63 & ~(1u << hit));
		assert_int_equal(stats.skipped_bytes, s.end[hit] - (hit ? s.end[hit - 1] : 0));
		assert_int_equal(stats.resyncs, hit < 5);
		assert_true(stats.bad_crc + stats.bad_version <= 1);
	}
	stream_fini(&s);
}

static void test_a_stream_cut_at_any_byte_gives_the_whole_frames(void **state)
{
	struct frame_reader_stats stats;
	struct stream s;

	(void)state;
	stream_fill(&s, 6);
	for (size_t len = 0; len <= s.bytes.len; len++) {
		size_t whole = 0;

		while (whole < s.n && s.end[whole] <= len)
			whole++;
		assert_int_equal(read_all(s.bytes.data, len, 1000, &stats), (1u << whole) - 1);
		assert_int_equal(stats.skipped_bytes, 0);
	}
	stream_fini(&s);
}

/* Bytes lost in the middle of a frame: the one behind is found inside its announced length. */
static void test_lost_bytes_cost_the_frame_they_are_from(void **state)
{
	struct frame_reader_stats stats;
	struct stream s;

	(void)state;
	stream_fill(&s, 6);
	for (size_t from = 0; from < s.end[2]; from++) {
		struct byte_buffer b = {0};
		size_t hit = 0;

		while (from >= s.end[hit])
			hit++;
		byte_buffer_append(&b, s.bytes.data, from);
		byte_buffer_append(&b, s.bytes.data + from + 1, s.bytes.len - from - 1);
		assert_int_equal(read_all(b.data, b.len, 64, &stats), 63 & ~(1u << hit));
		byte_buffer_fini(&b);
	}
	stream_fini(&s);
}

/* Rewrites one header field of the first frame and its CRC. */
static void forge(struct stream *s, size_t offset, uint32_t value)
{
	bytes_put32(s->bytes.data + offset, value);
	bytes_put32(s->bytes.data + 32, frame_crc32c(0, s->bytes.data, 32));
}

static void test_headers_no_writer_makes_are_refused(void **state)
{
	static const struct {
		size_t offset;
		uint32_t value;
		int expected;
	} cases[] = {
		{8, VS_FRAME_PAYLOAD_MAX + 1, -E2BIG},
		{8, UINT32_MAX, -E2BIG},
		{12, VS_FRAME_RAW_MAX + 1, -E2BIG},
		{12, 4, -E2BIG},                                        /* raw, but sizes differ */
		{4, 1 | FRAME_BATCH << 8 | 2u << 16, -EPROTONOSUPPORT}, /* an unknown flag */
		{4, 2 | FRAME_BATCH << 8, -EPROTONOSUPPORT},
		{0, 0x46534356 ^ 1, -EBADMSG},
	};
	struct frame_header h;
	struct stream s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct frame_reader_stats stats;

		stream_fill(&s, 6);
		assert_int_equal(frame_header_parse(s.bytes.data, s.bytes.len, &h), 0);
		forge(&s, cases[i].offset, cases[i].value);
		assert_int_equal(frame_header_parse(s.bytes.data, s.bytes.len, &h),
				 cases[i].expected);
		assert_int_equal(read_all(s.bytes.data, s.bytes.len, 1000, &stats), 62);
		assert_int_equal(stats.bad_length, cases[i].expected == -E2BIG);
		assert_int_equal(stats.bad_version, cases[i].expected == -EPROTONOSUPPORT);
		assert_int_equal(stats.skipped_bytes, s.end[0]);
		stream_fini(&s);
	}
	stream_fill(&s, 1);
	for (size_t len = 0; len < VS_FRAME_HEADER_BYTES; len++)
		assert_int_equal(frame_header_parse(s.bytes.data, len, &h), -EAGAIN);
	s.bytes.data[9]++; /* payload_bytes, without its CRC */
	assert_int_equal(frame_header_parse(s.bytes.data, s.bytes.len, &h), -EILSEQ);
	stream_fini(&s);
}

static void test_lying_compression_is_refused(void **state)
{
	static const uint32_t lies[] = {0, 1, 199, 201, VS_FRAME_RAW_MAX};
	struct frame_unpacker *u = frame_unpacker_new();
	const uint8_t *payload;
	struct frame_view frame;
	struct stream s;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		uint8_t content[200] = {0};

		stream_init(&s);
		stream_add(&s, FRAME_BATCH, content, sizeof(content));
		assert_int_equal(frame_parse(s.bytes.data, s.bytes.len, &frame), 0);
		assert_int_equal(frame.header.flags, VS_FRAME_ZSTD);
		assert_int_equal(frame_unpack(u, &frame, &payload, &len), 0);
		forge(&s, 12, lies[i]);
		assert_int_equal(frame_parse(s.bytes.data, s.bytes.len, &frame), 0);
		assert_int_equal(frame_unpack(u, &frame, &payload, &len), -EBADMSG);
		stream_fini(&s);
	}
	frame_unpacker_free(u);
}

/* A peer that died in mid-frame must not hide its successor for as long as the dead frame's
 * announced length. */
static void test_an_unfinished_frame_can_be_abandoned(void **state)
{
	struct frame_reader r;
	struct frame_view frame;
	struct stream s;

	(void)state;
	stream_fill(&s, 3);
	frame_reader_init(&r);
	frame_reader_abandon(&r);
	assert_int_equal(r.stats.abandoned, 0);
	assert_int_equal(frame_reader_push(&r, s.bytes.data, s.end[0]), 0);
	assert_int_equal(frame_reader_next(&r, &frame), 1);
	assert_int_equal(frame_reader_next(&r, &frame), 0);
	assert_false(frame_reader_is_partial(&r));

	/* All of frame 2's header and some of its payload, then frame 1, too short to fill it. */
	assert_int_equal(frame_reader_push(&r, s.bytes.data + s.end[1], VS_FRAME_HEADER_BYTES + 1),
			 0);
	assert_int_equal(frame_reader_push(&r, s.bytes.data + s.end[0], 8), 0);
	assert_int_equal(frame_reader_next(&r, &frame), 0);
	assert_true(frame_reader_is_partial(&r));
	frame_reader_abandon(&r);
	assert_int_equal(frame_reader_next(&r, &frame), 0);
	assert_int_equal(
		frame_reader_push(&r, s.bytes.data + s.end[0] + 8, s.end[1] - s.end[0] - 8), 0);
	assert_int_equal(frame_reader_next(&r, &frame), 1);
	assert_int_equal(frame.header.frame_seq, 1);
	assert_int_equal(r.stats.abandoned, 1);
	assert_int_equal(r.stats.resyncs, 1);
	assert_int_equal(r.stats.skipped_bytes, VS_FRAME_HEADER_BYTES + 1);
	frame_reader_fini(&r);
	stream_fini(&s);
}

/* Good headers everywhere, each announcing the largest payload: the work must stay linear. */
static void test_overlapping_claims_do_not_multiply_the_work(void **state)
{
	enum { CLAIMS = 100000 };
	struct byte_buffer b = {0};
	struct frame_reader_stats stats;
	uint8_t h[VS_FRAME_HEADER_BYTES];
	struct stream s;

	(void)state;
	stream_fill(&s, 1);
	memcpy(h, s.bytes.data, sizeof(h));
	bytes_put32(h + 8, VS_FRAME_PAYLOAD_MAX);
	bytes_put32(h + 12, VS_FRAME_PAYLOAD_MAX);
	bytes_put32(h + 32, frame_crc32c(0, h, 32));
	for (size_t i = 0; i < CLAIMS; i++)
		assert_int_equal(byte_buffer_append(&b, h, sizeof(h)), 0);
	assert_int_equal(read_all(b.data, b.len, 65536, &stats), 0);
	/* Each claim that is looked into costs VS_FRAME_PAYLOAD_MAX bytes of CRC. */
	assert_true(stats.bad_crc * VS_FRAME_PAYLOAD_MAX <= 8 * b.len);
	assert_true(stats.bad_crc > 0);
	byte_buffer_fini(&b);
	stream_fini(&s);
}

static void test_memory_stays_bounded_on_an_endless_stream(void **state)
{
	struct frame_reader r;
	struct frame_view frame;
	uint8_t noise[65536];
	uint32_t seed = 1;

	(void)state;
	frame_reader_init(&r);
	for (int i = 0; i < 500; i++) {
		for (size_t j = 0; j < sizeof(noise); j++) {
			seed = seed * 1664525 + 1013904223;
			noise[j] = (uint8_t) "VCSF\x01"[seed >> 24 & 3];
		}
		assert_int_equal(frame_reader_push(&r, noise, sizeof(noise)), 0);
		while (frame_reader_next(&r, &frame))
			;
		assert_true(r.pending.capacity <=
			    2 * (VS_FRAME_HEADER_BYTES + VS_FRAME_PAYLOAD_MAX + sizeof(noise)));
	}
	assert_int_equal(r.stats.frames, 0);
	frame_reader_fini(&r);
}

static void test_order_sees_losses_and_replays(void **state)
{
	static const struct {
		uint64_t session;
		uint32_t seq;
		int64_t expected;
	} steps[] = {
		{1, 0, 0},         {1, 1, 0},         {1, 1, -EALREADY},
		{1, 0, -EALREADY}, {1, 2, 0},         {1, 5, 2}, /* 3 and 4 are lost */
		{1, 4, -EALREADY}, {1, 6, 0},         {2, 0, 0},
		{1, 7, -EALREADY},            /* the old session's backlog */
		{2, 1, 0},         {3, 4, 4}, /* a session whose first frames are lost */
		{2, 2, -EALREADY}, {1, 8, -EALREADY}, {3, 5, 0},
	};
	struct frame_order o = {0};
	struct frame_header h = {.session_id = 9};

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		h.session_id = steps[i].session;
		h.frame_seq = steps[i].seq;
		assert_int_equal(frame_order_check(&o, &h), steps[i].expected);
	}
	/* The counter's end is no replay. */
	o = (struct frame_order){.started = true, .session_id = 9, .next = UINT32_MAX};
	h = (struct frame_header){.session_id = 9, .frame_seq = UINT32_MAX};
	assert_int_equal(frame_order_check(&o, &h), 0);
	h.frame_seq = 0;
	assert_int_equal(frame_order_check(&o, &h), 0);
	h.frame_seq = UINT32_MAX;
	assert_int_equal(frame_order_check(&o, &h), -EALREADY);
	h.frame_seq = 2;
	assert_int_equal(frame_order_check(&o, &h), 1);
}

static void test_a_restamped_frame_is_good(void **state)
{
	struct frame_view frame;
	struct stream s;

	(void)state;
	stream_fill(&s, 3);
	frame_restamp(s.bytes.data + s.end[1], 77, 1000);
	assert_int_equal(frame_parse(s.bytes.data + s.end[1], s.end[2] - s.end[1], &frame), 0);
	assert_true(frame.header.session_id == 77);
	assert_int_equal(frame.header.frame_seq, 1000);
	stream_fini(&s);
}

static void test_a_failed_write_uses_no_number(void **state)
{
	uint8_t *noise = malloc(VS_FRAME_RAW_MAX);
	struct frame_header h;
	uint64_t seed = 99;
	struct stream s;

	(void)state;
	for (size_t i = 0; i < VS_FRAME_RAW_MAX; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		noise[i] = (uint8_t)(seed >> 56);
	}
	stream_init(&s);
	assert_int_equal(frame_write(s.writer, FRAME_BATCH, noise, VS_FRAME_RAW_MAX, &s.bytes),
			 -E2BIG); /* incompressible, and too large to store */
	assert_int_equal(s.bytes.len, 0);
	stream_add(&s, FRAME_BATCH, noise, VS_FRAME_PAYLOAD_MAX);
	assert_int_equal(frame_header_parse(s.bytes.data, s.bytes.len, &h), 0);
	assert_int_equal(h.frame_seq, 0);
	assert_int_equal(h.payload_bytes, VS_FRAME_PAYLOAD_MAX);
	stream_fini(&s);
	free(noise);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc_is_crc32c),
		cmocka_unit_test(test_payloads_come_back),
		cmocka_unit_test(test_parts_come_back_and_are_smaller),
		cmocka_unit_test(test_any_chunking_gives_the_same_frames),
		cmocka_unit_test(test_garbage_between_frames_costs_nothing),
		cmocka_unit_test(test_every_flipped_bit_costs_one_frame),
		cmocka_unit_test(test_a_stream_cut_at_any_byte_gives_the_whole_frames),
		cmocka_unit_test(test_lost_bytes_cost_the_frame_they_are_from),
		cmocka_unit_test(test_headers_no_writer_makes_are_refused),
		cmocka_unit_test(test_lying_compression_is_refused),
		cmocka_unit_test(test_an_unfinished_frame_can_be_abandoned),
		cmocka_unit_test(test_overlapping_claims_do_not_multiply_the_work),
		cmocka_unit_test(test_memory_stays_bounded_on_an_endless_stream),
		cmocka_unit_test(test_order_sees_losses_and_replays),
		cmocka_unit_test(test_a_restamped_frame_is_good),
		cmocka_unit_test(test_a_failed_write_uses_no_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
