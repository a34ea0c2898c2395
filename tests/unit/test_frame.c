// SPDX-License-Identifier: GPL-2.0-only
/* What frames promise: a good frame is found in any stream, and nothing else is. */
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
	static const size_t sizes[] = {0, 1, 63, 64, 65, 1000, 65536, VS_FRAME_RAW_MAX};
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
		assert_int_equal(frame.header.flags, sizes[i] >= 64 ? VS_FRAME_ZSTD : 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc_is_crc32c),
		cmocka_unit_test(test_payloads_come_back),
		cmocka_unit_test(test_any_chunking_gives_the_same_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
