// SPDX-License-Identifier: GPL-2.0-only
/* A recording gives back every whole entry, whatever happened to the file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/message.h"
#include "proto/recording.h"

struct fixture {
	char path[64];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	snprintf(f->path, sizeof(f->path), "/tmp/test_recording.XXXXXX");
	fd = mkstemp(f->path);
	*state = f;
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	free(f);
	return 0;
}

static void test_entries_come_back_in_order(void **state)
{
	struct fixture *f = *state;
	struct frame_writer *frames = frame_writer_new(5);
	const struct recording_info *info;
	struct recording_writer *w;
	struct recording_reader *r;
	struct recording_entry entry;
	struct message_recording_end end;
	struct frame_unpacker *u = frame_unpacker_new();
	struct byte_buffer frame = {0};
	const uint8_t *payload;
	size_t len;

	assert_int_equal(recording_writer_open(f->path, VS_RECORDING_SIMULATED, 77, &w), 0);
	for (uint32_t i = 0; i < 100; i++) {
		uint8_t content[100];

		memset(content, (int)i, sizeof(content));
		frame.len = 0;
		assert_int_equal(frame_write(frames, FRAME_HEARTBEAT, content, i, &frame), 0);
		assert_int_equal(recording_writer_append(w, i % 3, 1000 + i, frame.data, frame.len),
				 0);
	}
	assert_int_equal(recording_writer_close(w, 9), 0);

	assert_int_equal(recording_reader_open(f->path, &r), 0);
	info = recording_reader_info(r);
	assert_int_equal(info->flags, VS_RECORDING_SIMULATED);
	assert_int_equal(info->created_realtime_ns, 77);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(recording_reader_next(r, &entry), 1);
		assert_int_equal(entry.source, i % 3);
		assert_int_equal(entry.arrival_tsc, 1000 + i);
		assert_int_equal(entry.frame.header.frame_seq, i);
		assert_int_equal(frame_unpack(u, &entry.frame, &payload, &len), 0);
		assert_int_equal(len, i);
		assert_true(len == 0 || payload[len - 1] == i);
	}
	assert_false(info->closed);
	assert_int_equal(recording_reader_next(r, &entry), 1);
	assert_int_equal(entry.frame.header.kind, FRAME_RECORDING_END);
	assert_int_equal(frame_unpack(u, &entry.frame, &payload, &len), 0);
	assert_int_equal(message_recording_end_unpack(payload, len, &end), 0);
	assert_int_equal(end.entries, 100);
	assert_int_equal(end.host_dropped, 9);
	assert_int_equal(end.n_checkpoints, 1);
	assert_int_equal(end.checkpoints[0], 32);
	free(end.checkpoints);
	assert_int_equal(recording_reader_next(r, &entry), 0);
	assert_true(info->closed);
	assert_false(info->cut);
	assert_int_equal(info->entries, 101);
	assert_int_equal(info->damaged_bytes, 0);
	recording_reader_close(r);
	frame_writer_free(frames);
	frame_unpacker_free(u);
	byte_buffer_fini(&frame);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_entries_come_back_in_order, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
