// SPDX-License-Identifier: GPL-2.0-only
/* Tests that unknown fields of a newer agent's messages pass through the collector into a
 * recording and back, and that no other data passes with them. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "host-collector/decode/framer.h"
#include "proto/recording.h"
#include "proto/unknown.h"

/* Fields 1000 (varint 7), 1001 ("newer"), 1002 (fixed32), 1003 (fixed64) of whatever message. */
static const uint8_t extra[] = {0xc0, 0x3e, 7,    0xca, 0x3e, 5, 'n', 'e', 'w',
				'e',  'r',  0xd5, 0x3e, 1,    2, 3,   4,   0xd9,
				0x3e, 1,    2,    3,    4,    5, 6,   7,   8};

static const struct {
	const char *name;
	enum frame_kind frame;
} kinds[] = {
	{"hello", FRAME_HELLO},
	{"heartbeat", FRAME_HEARTBEAT},
	{"echo_reply", FRAME_ECHO_REPLY},
	{"clock_sample", FRAME_CLOCK_SAMPLE},
	{"kernel_log", FRAME_KERNEL_LOG},
	{"guest_stack", FRAME_GUEST_STACK},
	{"config_reply", FRAME_CONFIG_REPLY},
	{"batch", FRAME_BATCH},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* The payload of a golden frame, as an agent of the first version sends it. */
static void golden_payload(const char *name, struct byte_buffer *out)
{
	struct frame_unpacker *u = frame_unpacker_new();
	uint8_t bytes[8192];
	struct frame_view frame;
	const uint8_t *payload;
	char path[512];
	ssize_t n;
	size_t len;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.frame", TEST_GOLDEN_DIR, name);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	n = read(fd, bytes, sizeof(bytes));
	close(fd);
	assert_int_equal(frame_parse(bytes, (size_t)n, &frame), 0);
	assert_int_equal(frame_unpack(u, &frame, &payload, &len), 0);
	assert_int_equal(byte_buffer_append(out, payload, len), 0);
	frame_unpacker_free(u);
}

static void record_fill(struct guest_record *r, enum frame_kind kind, const uint8_t *payload,
			size_t len)
{
	struct batch_decoder *d = batch_decoder_new();
	struct batch b;
	int err;

	memset(r, 0, sizeof(*r));
	if (kind == FRAME_BATCH) {
		err = batch_decode(d, payload, len, &b);
		r->batch.cpu = b.cpu;
		r->batch.watermark = b.watermark;
		r->batch.n_events = b.n_events;
		memcpy(r->batch.events, b.events, b.n_events * sizeof(b.events[0]));
	} else {
		err = message_unpack(frame_kind_row((uint8_t)kind)->message, payload, len,
				     record_message(r));
	}
	assert_int_equal(err, 0);
	batch_decoder_free(d);
	r->head = (struct record_head){.kind = (uint16_t)kind, .frame_seq = 5, .session_id = 9};
}

static void unknown_fill(struct guest_record *r, const uint8_t *bytes, size_t len)
{
	memset(r, 0, sizeof(*r));
	r->head = (struct record_head){.kind = RECORD_UNKNOWN, .frame_seq = 5, .session_id = 9};
	r->unknown.n = len;
	memcpy(r->unknown.bytes, bytes, len);
	assert_int_equal(record_check(r, record_bytes(r)), 0);
}

static void recording_round_trip(const struct frame_view *frame, struct byte_buffer *out)
{
	char path[] = "/tmp/test_unknown.XXXXXX";
	struct frame_unpacker *u = frame_unpacker_new();
	struct recording_writer *w;
	struct recording_reader *reader;
	struct recording_entry entry;
	const uint8_t *payload;
	size_t len;

	close(mkstemp(path));
	unlink(path);
	assert_int_equal(recording_writer_open(path, 0, 1, &w), 0);
	assert_int_equal(recording_writer_append(w, 1, 77, frame->bytes, frame->len), 0);
	assert_int_equal(recording_writer_close(w, 0), 0);
	assert_int_equal(recording_reader_open(path, &reader), 0);
	assert_int_equal(recording_reader_next(reader, &entry), 1);
	assert_int_equal(frame_unpack(u, &entry.frame, &payload, &len), 0);
	out->len = 0;
	assert_int_equal(byte_buffer_append(out, payload, len), 0);
	recording_reader_close(reader);
	frame_unpacker_free(u);
	unlink(path);
}

/* The bytes of a record's frame. */
static int frame_of(struct framer *f, struct guest_record *r, struct frame_view *out)
{
	struct frame_item item;
	const int err = framer_item(f, r, &item);

	return err ? err : frame_item_frame(&item, out);
}

static void test_a_newer_agents_fields_reach_the_recording(void **state)
{
	struct framer *framer = framer_new();
	struct guest_record *r = calloc(1, sizeof(*r));

	(void)state;
	for (size_t k = 0; k < N_KINDS; k++) {
		struct byte_buffer sent = {0}, back = {0}, plain = {0};
		uint8_t unknown[VS_UNKNOWN_MAX];
		struct frame_view frame;

		golden_payload(kinds[k].name, &sent);
		assert_int_equal(unknown_extract(kinds[k].frame, sent.data, sent.len, unknown,
						 sizeof(unknown)),
				 0);
		/* Without them the frame is what it would have been. */
		record_fill(r, kinds[k].frame, sent.data, sent.len);
		assert_int_equal(frame_of(framer, r, &frame), 0);
		recording_round_trip(&frame, &plain);

		byte_buffer_append(&sent, extra, sizeof(extra));
		assert_int_equal(unknown_extract(kinds[k].frame, sent.data, sent.len, unknown,
						 sizeof(unknown)),
				 sizeof(extra));
		assert_memory_equal(unknown, extra, sizeof(extra));
		unknown_fill(r, unknown, sizeof(extra));
		framer_unknown(framer, r);
		record_fill(r, kinds[k].frame, sent.data, sent.len);
		assert_int_equal(frame_of(framer, r, &frame), 0);
		recording_round_trip(&frame, &back);
		assert_int_equal(back.len, plain.len + sizeof(extra));
		assert_memory_equal(back.data, plain.data, plain.len);
		assert_memory_equal(back.data + plain.len, extra, sizeof(extra));
		/* Still the same message to this version. */
		record_fill(r, kinds[k].frame, back.data, back.len);
		byte_buffer_fini(&sent);
		byte_buffer_fini(&back);
		byte_buffer_fini(&plain);
	}
	framer_free(framer);
	free(r);
}

static void test_what_is_known_or_broken_does_not_get_through(void **state)
{
	static const uint8_t known[] = {1 << 3, 7}, group[] = {0xc3, 0x3e}, zero[] = {0x00, 1},
			     cut[] = {0xca, 0x3e, 5, 'n'},
			     endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					  0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t out[VS_UNKNOWN_MAX], much[VS_UNKNOWN_MAX + 16] = {0xca, 0x3e, 0x80, 0x10};
	struct framer *framer = framer_new();
	struct guest_record *r = calloc(1, sizeof(*r));
	struct byte_buffer payload = {0};
	struct frame_view frame;
	size_t plain;

	(void)state;
	assert_int_equal(unknown_extract(FRAME_HELLO, known, sizeof(known), out, sizeof(out)), 0);
	assert_false(unknown_check(FRAME_HELLO, known, sizeof(known)));
	assert_int_equal(unknown_extract(FRAME_HELLO, group, sizeof(group), out, sizeof(out)),
			 -EBADMSG);
	assert_int_equal(unknown_extract(FRAME_HELLO, zero, sizeof(zero), out, sizeof(out)),
			 -EBADMSG);
	assert_int_equal(unknown_extract(FRAME_HELLO, cut, sizeof(cut), out, sizeof(out)),
			 -EBADMSG);
	assert_int_equal(unknown_extract(FRAME_HELLO, endless, sizeof(endless), out, sizeof(out)),
			 -EBADMSG);
	assert_int_equal(unknown_extract(FRAME_HELLO, much, 4 + 2048, out, sizeof(out)), -E2BIG);
	assert_int_equal(unknown_extract(FRAME_NOTE, extra, sizeof(extra), out, sizeof(out)), 0);
	assert_true(unknown_check(FRAME_HELLO, extra, sizeof(extra)));

	/* A decoder that was taken over names known fields: dropped; of another frame: too. */
	golden_payload("echo_reply", &payload);
	record_fill(r, FRAME_ECHO_REPLY, payload.data, payload.len);
	assert_int_equal(frame_of(framer, r, &frame), 0);
	plain = frame.len;
	unknown_fill(r, known, sizeof(known));
	framer_unknown(framer, r);
	record_fill(r, FRAME_ECHO_REPLY, payload.data, payload.len);
	assert_int_equal(frame_of(framer, r, &frame), 0);
	assert_int_equal(frame.len, plain);
	unknown_fill(r, extra, sizeof(extra));
	framer_unknown(framer, r);
	record_fill(r, FRAME_ECHO_REPLY, payload.data, payload.len);
	r->head.frame_seq++;
	assert_int_equal(frame_of(framer, r, &frame), 0);
	assert_int_equal(frame.len, plain);
	byte_buffer_fini(&payload);
	framer_free(framer);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_newer_agents_fields_reach_the_recording),
		cmocka_unit_test(test_what_is_known_or_broken_does_not_get_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
