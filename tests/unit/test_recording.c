// SPDX-License-Identifier: GPL-2.0-only
/* Tests that every complete entry of a recording can be read, whatever happened to the file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/bytes.h"
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

enum { ENTRIES = 6 };

struct image {
	struct byte_buffer bytes;
	size_t end[ENTRIES + 1]; /* where each entry ends; the last is RECORDING_END */
};

/* A recording of ENTRIES small entries; entry i has frame_seq i. */
static void image_make(struct fixture *f, struct image *image)
{
	struct frame_writer *frames = frame_writer_new(5);
	struct recording_writer *w;
	struct byte_buffer frame = {0};
	struct stat st;
	int fd;

	*image = (struct image){0};
	assert_int_equal(recording_writer_open(f->path, 0, 1, &w), 0);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		uint8_t content[100];

		memset(content, 100 + (int)i, sizeof(content)); /* like nothing in headers */
		frame.len = 0;
		assert_int_equal(frame_write(frames, FRAME_HEARTBEAT, content, 3 + i * 17, &frame),
				 0);
		assert_int_equal(recording_writer_append(w, 1, i, frame.data, frame.len), 0);
		image->end[i] = recording_writer_bytes(w);
	}
	assert_int_equal(recording_writer_close(w, 0), 0);
	assert_int_equal(stat(f->path, &st), 0);
	image->end[ENTRIES] = (size_t)st.st_size;
	assert_int_equal(byte_buffer_reserve(&image->bytes, (size_t)st.st_size), 0);
	image->bytes.len = (size_t)st.st_size;
	fd = open(f->path, O_RDONLY);
	assert_int_equal(read(fd, image->bytes.data, image->bytes.len), image->bytes.len);
	close(fd);
	frame_writer_free(frames);
	byte_buffer_fini(&frame);
}

static void file_write(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

/* Bit i: the entry with frame_seq i came; bit ENTRIES: RECORDING_END did. */
static uint32_t read_all(const char *path, struct recording_info *info)
{
	struct recording_reader *r;
	struct recording_entry entry;
	uint32_t seen = 0;
	int got;

	assert_int_equal(recording_reader_open(path, &r), 0);
	while ((got = recording_reader_next(r, &entry)) == 1) {
		uint32_t bit = entry.frame.header.kind == FRAME_RECORDING_END
				       ? 1u << ENTRIES
				       : 1u << entry.frame.header.frame_seq;

		assert_false(seen & bit);
		seen |= bit;
		if (bit != 1u << ENTRIES)
			assert_int_equal(entry.arrival_tsc, entry.frame.header.frame_seq);
	}
	assert_int_equal(got, 0);
	assert_int_equal(recording_reader_next(r, &entry), 0);
	*info = *recording_reader_info(r);
	recording_reader_close(r);
	return seen;
}

static void test_cut_at_any_byte_all_whole_entries_are_read(void **state)
{
	struct fixture *f = *state;
	struct image image;

	image_make(f, &image);
	for (size_t len = 1; len <= image.bytes.len; len++) {
		struct recording_info info;
		size_t whole = 0;

		while (whole <= ENTRIES && image.end[whole] <= len)
			whole++;
		file_write(f->path, image.bytes.data, len);
		assert_int_equal(read_all(f->path, &info), (1u << whole) - 1);
		assert_int_equal(info.entries, whole);
		assert_int_equal(info.cut, len != 32 && (!whole || len != image.end[whole - 1]));
		assert_int_equal(info.closed, whole > ENTRIES);
		assert_int_equal(info.damaged_bytes, 0);
		assert_int_equal(info.file_bytes, len);
	}
	byte_buffer_fini(&image.bytes);
}

static void test_damage_costs_the_damaged_entry(void **state)
{
	struct fixture *f = *state;
	struct image image;

	image_make(f, &image);
	for (size_t at = 32; at < image.bytes.len; at++) {
		struct recording_info info;
		size_t hit = 0;

		while (at >= image.end[hit])
			hit++;
		image.bytes.data[at] ^= 0x10;
		file_write(f->path, image.bytes.data, image.bytes.len);
		image.bytes.data[at] ^= 0x10;
		assert_int_equal(read_all(f->path, &info), ((2u << ENTRIES) - 1) & ~(1u << hit));
		assert_int_equal(info.damaged_bytes,
				 image.end[hit] - (hit ? image.end[hit - 1] : 32));
		assert_int_equal(info.closed, hit != ENTRIES);
		assert_false(info.cut);
	}
	byte_buffer_fini(&image.bytes);
}

static void test_bytes_missing_inside_cost_the_entries_they_are_from(void **state)
{
	struct fixture *f = *state;
	struct image image;

	image_make(f, &image);
	for (size_t from = 32; from + 20 < image.end[ENTRIES - 1]; from++) {
		struct byte_buffer b = {0};
		struct recording_info info;
		uint32_t lost = 0;

		for (size_t i = 0; i <= ENTRIES; i++)
			if (image.end[i] > from && (i ? image.end[i - 1] : 32) < from + 20)
				lost |= 1u << i;
		byte_buffer_append(&b, image.bytes.data, from);
		byte_buffer_append(&b, image.bytes.data + from + 20, image.bytes.len - from - 20);
		file_write(f->path, b.data, b.len);
		assert_int_equal(read_all(f->path, &info), ((2u << ENTRIES) - 1) & ~lost);
		assert_true(info.closed);
		byte_buffer_fini(&b);
	}
	byte_buffer_fini(&image.bytes);
}

static void test_other_files_are_no_recordings(void **state)
{
	static const struct {
		const char *content;
		size_t len;
		int expected;
	} cases[] = {
		{"", 0, -EBADMSG},
		{"x", 1, -EBADMSG},
		{"VCSREC\n\n", 8, -EBADMSG}, /* transferred as text */
		{"an ELF, a picture, a text of more than thirty-two bytes", 55, -EBADMSG},
		{"VCSREC\r\n with a header whose CRC does not hold ..........", 57, -EBADMSG},
	};
	struct fixture *f = *state;
	struct recording_reader *r;
	struct image image;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		file_write(f->path, cases[i].content, cases[i].len);
		assert_int_equal(recording_reader_open(f->path, &r), cases[i].expected);
	}
	unlink(f->path);
	assert_int_equal(recording_reader_open(f->path, &r), -ENOENT);
	assert_int_equal(recording_reader_open("/tmp", &r), -EISDIR);

	image_make(f, &image);
	bytes_put32(image.bytes.data + 8, 2);
	bytes_put32(image.bytes.data + 28, frame_crc32c(0, image.bytes.data, 28));
	file_write(f->path, image.bytes.data, image.bytes.len);
	assert_int_equal(recording_reader_open(f->path, &r), -EPROTONOSUPPORT);
	byte_buffer_fini(&image.bytes);
}

static void test_a_recording_can_be_read_while_it_grows(void **state)
{
	struct fixture *f = *state;
	struct frame_writer *frames = frame_writer_new(5);
	struct recording_writer *w;
	struct recording_reader *r;
	struct recording_entry entry;
	struct byte_buffer frame = {0};

	assert_int_equal(recording_writer_open(f->path, 0, 1, &w), 0);
	assert_int_equal(recording_reader_open(f->path, &r), 0);
	for (uint32_t i = 0; i < 50; i++) {
		assert_int_equal(recording_reader_next(r, &entry), 0);
		frame.len = 0;
		assert_int_equal(
			frame_write(frames, FRAME_HEARTBEAT, (const uint8_t *)"abc", 3, &frame), 0);
		assert_int_equal(recording_writer_append(w, 1, i, frame.data, frame.len), 0);
		assert_int_equal(recording_reader_next(r, &entry), 0);
		assert_int_equal(recording_writer_flush(w), 0);
		assert_int_equal(recording_reader_next(r, &entry), 1);
		assert_int_equal(entry.arrival_tsc, i);
	}
	assert_int_equal(recording_writer_close(w, 0), 0);
	assert_int_equal(recording_reader_next(r, &entry), 1);
	assert_true(recording_reader_info(r)->closed);

	/* And it ends, instead of crashing the reader, when the file shrinks. */
	assert_int_equal(truncate(f->path, 40), 0);
	assert_int_equal(recording_reader_next(r, &entry), 0);
	recording_reader_close(r);
	frame_writer_free(frames);
	byte_buffer_fini(&frame);
}

/* Entries until the file is full at `limit` bytes; in a process of its own, which the limit and
 * the signal's disposition end with. Returns 0 if all was as promised, else a line number. */
static int fill_disk(const char *path, size_t limit)
{
	struct rlimit rl = {.rlim_cur = limit, .rlim_max = limit};
	struct frame_writer *frames = frame_writer_new(5);
	struct recording_writer *w;
	struct byte_buffer frame = {0};
	uint8_t content[1000];
	uint64_t seed = 7;
	int err = 0;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &rl))
		return __LINE__;
	err = recording_writer_open(path, 0, 1, &w);
	if (limit < 32)
		return err == -EFBIG ? 0 : __LINE__;
	if (err)
		return __LINE__;
	for (uint32_t i = 0; !err && i < 4000; i++) {
		for (size_t j = 0; j < sizeof(content); j++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			content[j] = (uint8_t)(seed >> 56);
		}
		frame.len = 0;
		if (frame_write(frames, FRAME_HEARTBEAT, content, sizeof(content), &frame))
			return __LINE__;
		err = recording_writer_append(w, 1, i, frame.data, frame.len);
	}
	if (err != -EFBIG || recording_writer_append(w, 1, 0, frame.data, frame.len) != -EFBIG ||
	    recording_writer_flush(w) != -EFBIG)
		return __LINE__;
	return recording_writer_close(w, 0) == -EFBIG ? 0 : __LINE__;
}

static void test_a_full_disk_leaves_whole_entries(void **state)
{
	enum { ENTRY = 24 + VS_FRAME_HEADER_BYTES + 1000 };
	static const size_t limits[] = {
		0,       31,         32,
		33,      32 + ENTRY, 32 + ENTRY + 1,
		262144,  300000,     32 + 500 * ENTRY - 1,
		1000000,
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		uint64_t whole = limits[i] < 32 ? 0 : (limits[i] - 32) / ENTRY;
		struct recording_reader *r;
		struct recording_entry entry;
		struct stat st;
		int status;
		pid_t pid;

		unlink(f->path);
		pid = fork();
		if (!pid)
			_exit(fill_disk(f->path, limits[i]) ? 1 : 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		if (limits[i] < 32)
			continue;
		assert_int_equal(stat(f->path, &st), 0);
		assert_int_equal(st.st_size, 32 + whole * ENTRY);
		assert_int_equal(recording_reader_open(f->path, &r), 0);
		for (uint64_t n = 0; n < whole; n++) {
			assert_int_equal(recording_reader_next(r, &entry), 1);
			assert_int_equal(entry.arrival_tsc, n);
		}
		assert_int_equal(recording_reader_next(r, &entry), 0);
		assert_false(recording_reader_info(r)->cut);
		assert_false(recording_reader_info(r)->closed);
		recording_reader_close(r);
	}
}

static void test_what_is_no_frame_is_not_recorded(void **state)
{
	struct fixture *f = *state;
	struct frame_writer *frames = frame_writer_new(5);
	struct recording_writer *w;
	struct byte_buffer frame = {0};
	struct recording_info info;

	assert_int_equal(frame_write(frames, FRAME_HEARTBEAT, (const uint8_t *)"abc", 3, &frame),
			 0);
	assert_int_equal(recording_writer_open(f->path, 0, 1, &w), 0);
	assert_int_equal(recording_writer_append(w, 1, 0, frame.data, frame.len - 1), -EBADMSG);
	assert_int_equal(recording_writer_append(w, 1, 0, frame.data, 5), -EBADMSG);
	assert_int_equal(recording_writer_append(w, 1, 0, frame.data, 0), -EBADMSG);
	assert_int_equal(recording_writer_append(w, 1, 0, frame.data + 1, frame.len - 1), -EBADMSG);
	assert_int_equal(recording_writer_append(w, 1, 0, frame.data, frame.len), 0);
	assert_int_equal(recording_writer_close(w, 0), 0);
	assert_int_equal(read_all(f->path, &info), 1 | 1u << ENTRIES);
	assert_int_equal(info.damaged_bytes, 0);
	frame_writer_free(frames);
	byte_buffer_fini(&frame);
}

/* Enough incompressible entries for several windows and flushes, and for checkpoints. */
static void test_large_recordings_have_checkpoints(void **state)
{
	enum { N = 40 };
	struct fixture *f = *state;
	struct frame_writer *frames = frame_writer_new(5);
	struct frame_unpacker *u = frame_unpacker_new();
	struct message_recording_end end = {0};
	struct byte_buffer frame = {0}, image = {0};
	struct recording_writer *w;
	struct recording_reader *r;
	struct recording_entry entry;
	uint8_t *noise = malloc(VS_FRAME_PAYLOAD_MAX);
	uint64_t seed = 3;
	int fd;

	for (size_t i = 0; i < VS_FRAME_PAYLOAD_MAX; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		noise[i] = (uint8_t)(seed >> 56);
	}
	assert_int_equal(recording_writer_open(f->path, 0, 1, &w), 0);
	for (uint32_t i = 0; i < N; i++) {
		frame.len = 0;
		assert_int_equal(frame_write(frames, FRAME_BATCH, noise,
					     VS_FRAME_PAYLOAD_MAX - i * 1000, &frame),
				 0);
		assert_int_equal(recording_writer_append(w, 1, i, frame.data, frame.len), 0);
	}
	assert_int_equal(recording_writer_close(w, 0), 0);
	assert_int_equal(recording_reader_open(f->path, &r), 0);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(recording_reader_next(r, &entry), 1);
		assert_int_equal(entry.arrival_tsc, i);
		assert_int_equal(entry.frame.header.payload_bytes, VS_FRAME_PAYLOAD_MAX - i * 1000);
	}
	assert_int_equal(recording_reader_next(r, &entry), 1);
	{
		const uint8_t *payload;
		size_t len;

		assert_int_equal(frame_unpack(u, &entry.frame, &payload, &len), 0);
		assert_int_equal(message_recording_end_unpack(payload, len, &end), 0);
	}
	assert_int_equal(recording_reader_next(r, &entry), 0);
	assert_int_equal(end.n_checkpoints, 5); /* 20 MB, one per 4 MiB */
	assert_int_equal(byte_buffer_reserve(&image, recording_reader_info(r)->file_bytes), 0);
	fd = open(f->path, O_RDONLY);
	image.len = (size_t)read(fd, image.data, image.capacity);
	close(fd);
	for (size_t i = 0; i < end.n_checkpoints; i++) {
		assert_true(end.checkpoints[i] + 4 < image.len);
		assert_memory_equal(image.data + end.checkpoints[i], "VCSE", 4);
		if (i)
			assert_true(end.checkpoints[i] - end.checkpoints[i - 1] >= 4 << 20);
	}
	recording_reader_close(r);
	free(end.checkpoints);
	free(noise);
	frame_writer_free(frames);
	frame_unpacker_free(u);
	byte_buffer_fini(&frame);
	byte_buffer_fini(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_entries_come_back_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_at_any_byte_all_whole_entries_are_read,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_damage_costs_the_damaged_entry, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			test_bytes_missing_inside_cost_the_entries_they_are_from, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_files_are_no_recordings, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_recording_can_be_read_while_it_grows, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_full_disk_leaves_whole_entries, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_what_is_no_frame_is_not_recorded, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_large_recordings_have_checkpoints, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
