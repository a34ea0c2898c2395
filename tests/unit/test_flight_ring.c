/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests which older frames the flight recorder's ring keeps, by reading the recording that it
 * writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/daemon/flight_ring.h"
#include "host-collector/model/model.h"
#include "proto/message.h"
#include "proto/recording.h"

#define SECOND 1000000000ull

enum { VM = 1, AGE_SECONDS = 10, NOTES_MAX = 16, RING_BYTES = 1 << 20 };

struct ring {
	struct flight_ring *ring;
	struct frame_maker *maker;
	uint32_t frame_seq;
	uint8_t kinds[NOTES_MAX];
	size_t n;
	uint32_t origins[NOTES_MAX]; /* thread ids */
	size_t n_origins;
	uint32_t n_noise, first_noise; /* frames of noise_push() that were read */
};

static int setup(void **state)
{
	struct ring *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->ring = flight_ring_new(AGE_SECONDS * SECOND, RING_BYTES, SECOND);
	r->maker = frame_maker_new();
	assert_non_null(r->ring);
	assert_non_null(r->maker);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct ring *r = *state;

	flight_ring_free(r->ring);
	frame_maker_free(r->maker);
	free(r);
	return 0;
}

static void push(struct ring *r, uint64_t second, enum frame_kind kind, struct byte_buffer *payload)
{
	struct frame_item item;
	struct frame_view frame;

	assert_int_equal(frame_maker_frame(r->maker, kind, 1, r->frame_seq++, payload->data,
					   payload->len, &frame),
			 0);
	item = frame_item_of(&frame);
	flight_ring_push(r->ring, VS_SOURCE_HOST, second * SECOND, &item);
	byte_buffer_fini(payload);
}

static void note_push(struct ring *r, uint64_t second, uint32_t vm, uint8_t kind)
{
	struct message_note m = {.kind = kind, .vm = vm, .host_tsc = second * SECOND};
	struct byte_buffer payload = {0};

	snprintf(m.text, sizeof(m.text), "at %llu s", (unsigned long long)second);
	assert_int_equal(message_note_pack(&m, &payload), 0);
	push(r, second, FRAME_NOTE, &payload);
}

static void origin_push(struct ring *r, uint64_t second, int32_t tid)
{
	static struct message_task_origins m = {.n = 1};
	struct byte_buffer payload = {0};

	m.tasks[0].tid = m.tasks[0].tgid = tid;
	assert_int_equal(message_task_origins_pack(&m, &payload), 0);
	push(r, second, FRAME_TASK_ORIGINS, &payload);
}

typedef void (*frame_reader_fn)(struct ring *r, uint8_t kind, const uint8_t *payload, size_t len);

/* Writes the ring's recording and passes each of its frames to `take`. */
static void frames_read(struct ring *r, frame_reader_fn take)
{
	char path[] = "/tmp/test_flight_ring.XXXXXX";
	struct frame_unpacker *unpacker = frame_unpacker_new();
	struct model *names = model_new();
	struct recording_reader *reader;
	struct recording_entry entry;
	const int fd = mkstemp(path);

	assert_non_null(names);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(flight_ring_write(r->ring, names, path, 0), 0);
	assert_int_equal(recording_reader_open(path, &reader), 0);
	while (recording_reader_next(reader, &entry) > 0) {
		const uint8_t *payload;
		size_t len;

		assert_int_equal(frame_unpack(unpacker, &entry.frame, &payload, &len), 0);
		take(r, entry.frame.header.kind, payload, len);
	}
	recording_reader_close(reader);
	frame_unpacker_free(unpacker);
	model_free(names);
	unlink(path);
}

static void note_take(struct ring *r, uint8_t kind, const uint8_t *payload, size_t len)
{
	static struct message_task_origins origins;
	struct message_note m;

	if (kind == FRAME_TASK_ORIGINS) {
		assert_int_equal(message_task_origins_unpack(payload, len, &origins), 0);
		assert_true(r->n_origins < NOTES_MAX);
		r->origins[r->n_origins++] = (uint32_t)origins.tasks[0].tid;
	}
	if (kind != FRAME_NOTE)
		return;
	assert_int_equal(message_note_unpack(payload, len, &m), 0);
	assert_true(r->n < NOTES_MAX);
	r->kinds[r->n++] = (uint8_t)m.kind;
}

/* Reads the kinds of the notes that the ring's recording has, and the threads whose origins it has,
 * in order. */
static void notes_read(struct ring *r)
{
	frames_read(r, note_take);
}

static void test_migration_outlives_its_age(void **state)
{
	struct ring *r = *state;

	note_push(r, 1, VM, NOTE_CHANNEL_UP);
	note_push(r, 2, VM, NOTE_MIGRATION);
	note_push(r, 3, VM, NOTE_MIGRATION_OVER);
	note_push(r, 4, VM, NOTE_MIGRATION);
	note_push(r, 60, VM, NOTE_VM_PAUSED);
	note_push(r, 61, VM, NOTE_VM_RESUMED);
	notes_read(r);
	assert_int_equal(r->n, 3);
	assert_int_equal(r->kinds[0], NOTE_MIGRATION);
	assert_int_equal(r->kinds[1], NOTE_VM_PAUSED);
	assert_int_equal(r->kinds[2], NOTE_VM_RESUMED);
}

static void test_a_pause_and_a_migration_do_not_replace_each_other(void **state)
{
	struct ring *r = *state;

	note_push(r, 1, VM, NOTE_MIGRATION);
	note_push(r, 2, VM, NOTE_VM_PAUSED);
	note_push(r, 60, VM, NOTE_CHANNEL_DOWN);
	notes_read(r);
	assert_int_equal(r->n, 3);
	assert_int_equal(r->kinds[0], NOTE_MIGRATION);
	assert_int_equal(r->kinds[1], NOTE_VM_PAUSED);
	assert_int_equal(r->kinds[2], NOTE_CHANNEL_DOWN);
}

/* The same frames, as many seconds later, with and without a hold from the fourth second on. */
static void test_what_is_held_outlives_its_age(void **state)
{
	struct ring *r = *state;

	for (uint64_t second = 1; second <= 6; second++)
		note_push(r, second, VM, NOTE_CHANNEL_UP);
	flight_ring_hold(r->ring, 4 * SECOND);
	flight_ring_hold(r->ring, 5 * SECOND); /* a later stall does not let go of the first */
	note_push(r, 60, VM, NOTE_CHANNEL_DOWN);
	notes_read(r);
	assert_int_equal(r->n, 4);
	assert_int_equal(r->kinds[0], NOTE_CHANNEL_UP);
	assert_int_equal(r->kinds[3], NOTE_CHANNEL_DOWN);
	flight_ring_release(r->ring);
	note_push(r, 61, VM, NOTE_CHANNEL_UP);
	r->n = 0;
	notes_read(r);
	assert_int_equal(r->n, 2);
}

static void test_memory_bounds_what_is_held(void **state)
{
	struct ring *r = *state;
	struct flight_ring_stats stats;

	note_push(r, 1, VM, NOTE_CHANNEL_UP);
	flight_ring_hold(r->ring, 0);
	for (uint64_t second = 2; second <= 20000; second++)
		note_push(r, second, VM, NOTE_CHANNEL_UP);
	flight_ring_stats_get(r->ring, &stats);
	assert_true(stats.bytes <= RING_BYTES);
	assert_true(stats.early > 0);
}

/* The ring keeps 10 s. A recording of them needs the origins that were sent up to 30 s before. */
static void test_what_is_repeated_stays_until_it_was(void **state)
{
	struct ring *r = *state;

	for (uint64_t second = 1; second <= 100; second++) {
		if (second % 20 == 0)
			origin_push(r, second, (int32_t)second);
		note_push(r, second, VM, NOTE_CHANNEL_UP);
	}
	notes_read(r);
	assert_int_equal(r->n_origins, 3);
	assert_int_equal(r->origins[0], 60);
	assert_int_equal(r->origins[1], 80);
	assert_int_equal(r->origins[2], 100);
}

/* Fills a payload that cannot be compressed, from its number. */
static void noise_fill(uint8_t *bytes, size_t len, uint32_t number)
{
	uint32_t x = number + 1;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(x >> 24);
	}
}

static void noise_take(struct ring *r, uint8_t kind, const uint8_t *payload, size_t len)
{
	static uint8_t expected[VS_FRAME_RAW_MAX];
	uint32_t number;

	if (kind != FRAME_BATCH)
		return;
	assert_true(len >= sizeof(number));
	memcpy(&number, payload, sizeof(number));
	if (!r->n_noise)
		r->first_noise = number;
	assert_int_equal(number, r->first_noise + r->n_noise++);
	noise_fill(expected, len, number);
	assert_memory_equal(payload + sizeof(number), expected + sizeof(number),
			    len - sizeof(number));
}

/* Reads the frames that noise_push() added: unchanged, and each the successor of the one before. */
static void noise_read(struct ring *r)
{
	r->n_noise = 0;
	frames_read(r, noise_take);
}

static void noise_push(struct ring *r, uint64_t second, size_t len)
{
	struct byte_buffer payload = {0};
	static uint8_t bytes[VS_FRAME_RAW_MAX];

	noise_fill(bytes, len, r->frame_seq);
	memcpy(bytes, &r->frame_seq, sizeof(r->frame_seq));
	assert_int_equal(byte_buffer_append(&payload, bytes, len), 0);
	push(r, second, FRAME_BATCH, &payload);
}

/* Small and large frames, in more rounds through the ring's memory than it has room for at once. */
static void test_frames_of_all_sizes_come_back_unchanged(void **state)
{
	static const size_t sizes[] = {4, 100, 70000, 5, 3000, 200000, 65000, 17};
	const size_t n_sizes = sizeof(sizes) / sizeof(sizes[0]);
	struct flight_ring_stats stats;
	struct ring *r = *state;

	for (size_t i = 0; i < 4000; i++) {
		noise_push(r, 1 + i / 100, sizes[i % n_sizes] + (i % n_sizes != 2) * (i / n_sizes));
		if (i % 97)
			continue;
		flight_ring_stats_get(r->ring, &stats);
		noise_read(r);
		assert_int_equal(r->n_noise, stats.frames);
		assert_int_equal(r->first_noise + r->n_noise, r->frame_seq);
		assert_true(stats.bytes <= RING_BYTES);
	}
	assert_true(stats.early > 0);
	flight_ring_clear(r->ring);
	flight_ring_stats_get(r->ring, &stats);
	assert_int_equal(stats.frames + stats.bytes, 0);
	noise_push(r, 100, 50);
	noise_read(r);
	assert_int_equal(r->n_noise, 1);
	assert_int_equal(r->first_noise + 1, r->frame_seq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_migration_outlives_its_age, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_pause_and_a_migration_do_not_replace_each_other, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_held_outlives_its_age, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_memory_bounds_what_is_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_repeated_stays_until_it_was, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_frames_of_all_sizes_come_back_unchanged, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
