// SPDX-License-Identifier: GPL-2.0-only
/* Tests the agent's side of the protocol, with frames from a frame writer in place of a host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "guest-agent/session.h"

struct fixture {
	struct frame_writer *writer, *host;
	struct session *session;
	struct byte_buffer out, from_host, payload;
	int n_said;
	char said[256];
};

static void on_say(void *context, const char *line)
{
	struct fixture *f = context;

	f->n_said++;
	snprintf(f->said, sizeof(f->said), "%s", line);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct session_options options = {.seed = 42, .say = on_say, .context = f};

	f->writer = options.writer = frame_writer_new(0);
	f->host = frame_writer_new(1001);
	f->session = session_new(&options);
	*state = f;
	return !f->session;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	session_free(f->session);
	frame_writer_free(f->writer);
	frame_writer_free(f->host);
	byte_buffer_fini(&f->out);
	byte_buffer_fini(&f->from_host);
	byte_buffer_fini(&f->payload);
	free(f);
	return 0;
}

/* Appends a host's frame to from_host. */
static void host_write(struct fixture *f, enum frame_kind kind)
{
	assert_int_equal(frame_write(f->host, kind, f->payload.data, f->payload.len, &f->from_host),
			 0);
	f->payload.len = 0;
}

static void host_hello(struct fixture *f, uint32_t min, uint32_t max)
{
	struct message_hello *hello = calloc(1, sizeof(*hello));

	hello->protocol_min = min;
	hello->protocol_max = max;
	hello->role = STREAM_ROLE_HOST;
	hello->clock = STREAM_CLOCK_HOST_TSC;
	hello->clock_hz = 1000000000;
	strcpy(hello->program_version, "9.9");
	assert_int_equal(message_hello_pack(hello, &f->payload), 0);
	free(hello);
	host_write(f, FRAME_HELLO);
}

static void host_echo(struct fixture *f, uint32_t id)
{
	assert_int_equal(
		message_echo_request_pack(&(struct message_echo_request){.id = id}, &f->payload),
		0);
	host_write(f, FRAME_ECHO_REQUEST);
}

static void host_restart(struct fixture *f, uint64_t session_id)
{
	frame_writer_free(f->host);
	f->host = frame_writer_new(session_id);
}

/* Hands from_host to the session, `step` bytes at a time. */
static void deliver(struct fixture *f, uint64_t received, size_t step)
{
	for (size_t at = 0; at < f->from_host.len; at += step) {
		size_t n = f->from_host.len - at < step ? f->from_host.len - at : step;

		assert_int_equal(session_receive(f->session, f->from_host.data + at, n, received),
				 0);
	}
	f->from_host.len = 0;
}

static void send_hello(struct fixture *f, uint64_t now_ms)
{
	struct message_hello *hello = calloc(1, sizeof(*hello));

	hello->protocol_min = hello->protocol_max = 1;
	hello->role = STREAM_ROLE_GUEST;
	hello->clock = STREAM_CLOCK_GUEST_TSC;
	hello->clock_hz = 1000000000;
	f->out.len = 0;
	assert_true(session_hello_due(f->session, now_ms));
	assert_int_equal(session_hello(f->session, hello, now_ms, &f->out), 0);
	free(hello);
}

static struct frame_header stamped(struct fixture *f)
{
	struct frame_reader reader;
	struct frame_view view;

	session_stamp(f->session, f->out.data);
	frame_reader_init(&reader);
	frame_reader_push(&reader, f->out.data, f->out.len);
	assert_int_equal(frame_reader_next(&reader, &view), 1); /* so the CRC is right */
	frame_reader_fini(&reader);
	return view.header;
}

static void hello_repeats_until_the_host_is_heard(void **state)
{
	struct fixture *f = *state;

	assert_false(session_hello_due(f->session, 0));
	session_begin(f->session);
	send_hello(f, 100);
	assert_false(session_hello_due(f->session, 1099));
	send_hello(f, 1100);
	assert_int_equal(session_state(f->session), SESSION_GREETING);
	host_hello(f, 1, 1);
	deliver(f, 5, 7);
	assert_int_equal(session_state(f->session), SESSION_OPEN);
	send_hello(f, 1101); /* who greets is greeted */
	assert_false(session_hello_due(f->session, 100000));
}

static void an_echo_carries_both_stamps_and_opens_the_session(void **state)
{
	struct fixture *f = *state;
	struct frame_unpacker *unpacker = frame_unpacker_new();
	struct message_echo_reply reply;
	struct frame_reader reader;
	struct frame_view view;
	const uint8_t *payload;
	size_t len;

	session_begin(f->session);
	host_echo(f, 77);
	host_echo(f, 78);
	deliver(f, 1000, 1);
	assert_int_equal(session_state(f->session), SESSION_OPEN);
	for (uint32_t id = 77; id <= 78; id++) {
		f->out.len = 0;
		assert_true(session_echo_due(f->session, 0));
		assert_int_equal(session_echo(f->session, 0, 1000 + id, &f->out), 0);
		session_stamp(f->session, f->out.data);
		frame_reader_init(&reader);
		frame_reader_push(&reader, f->out.data, f->out.len);
		assert_int_equal(frame_reader_next(&reader, &view), 1);
		assert_int_equal(view.header.kind, FRAME_ECHO_REPLY);
		assert_int_equal(frame_unpack(unpacker, &view, &payload, &len), 0);
		assert_int_equal(message_echo_reply_unpack(payload, len, &reply), 0);
		assert_int_equal(reply.id, id);
		assert_int_equal(reply.received, 1000);
		assert_int_equal(reply.sent, 1000 + id);
		frame_reader_fini(&reader);
	}
	assert_false(session_echo_due(f->session, 0));
	frame_unpacker_free(unpacker);
}

static void frames_are_numbered_from_zero_in_each_session(void **state)
{
	struct fixture *f = *state;
	struct frame_header first, second, third;

	session_begin(f->session);
	send_hello(f, 0);
	first = stamped(f);
	second = stamped(f);
	assert_int_equal(first.frame_seq, 0);
	assert_int_equal(second.frame_seq, 1);
	assert_true(first.session_id == second.session_id);
	session_end(f->session);
	session_begin(f->session);
	third = stamped(f);
	assert_int_equal(third.frame_seq, 0);
	assert_true(third.session_id != first.session_id);
}

static void a_host_that_came_back_unnoticed_gets_a_new_session(void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	session_begin(f->session);
	host_hello(f, 1, 1);
	deliver(f, 0, 1000);
	before = session_number(f->session);
	host_hello(f, 1, 1); /* the same host greets again: no new session */
	deliver(f, 0, 1000);
	assert_int_equal(session_number(f->session), before);
	host_restart(f, 2002);
	host_hello(f, 1, 1);
	deliver(f, 0, 1000);
	assert_int_equal(session_number(f->session), before + 1);
	assert_int_equal(session_state(f->session), SESSION_OPEN);
	send_hello(f, 5);
	assert_int_equal(stamped(f).frame_seq, 0);
}

static void garbage_costs_only_itself_and_is_said_once(void **state)
{
	struct fixture *f = *state;
	struct session_stats stats;
	uint32_t random = 7;

	session_begin(f->session);
	for (int round = 0; round < 20; round++) {
		uint8_t garbage[333];

		for (size_t i = 0; i < sizeof(garbage); i++)
			garbage[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
		byte_buffer_append(&f->from_host, garbage, sizeof(garbage));
		host_echo(f, 5);
	}
	deliver(f, 0, 100);
	session_stats_get(f->session, &stats);
	assert_int_equal(stats.reader.frames, 20);
	assert_int_equal(stats.reader.skipped_bytes, 20 * 333);
	assert_int_equal(f->n_said, 1);
	assert_non_null(strstr(f->said, "no frame"));
}

static void a_damaged_frame_is_counted_and_the_next_one_read(void **state)
{
	struct fixture *f = *state;
	struct session_stats stats;

	session_begin(f->session);
	host_echo(f, 1);
	f->from_host.data[VS_FRAME_HEADER_BYTES] ^= 1;
	host_echo(f, 2);
	deliver(f, 0, 1000);
	session_stats_get(f->session, &stats);
	assert_int_equal(stats.reader.bad_crc, 1);
	assert_int_equal(stats.reader.frames, 1);
	assert_true(session_echo_due(f->session, 0));
}

static void a_replayed_frame_is_not_answered(void **state)
{
	struct fixture *f = *state;
	struct session_stats stats;
	struct byte_buffer copy = {0};

	session_begin(f->session);
	host_echo(f, 1);
	byte_buffer_append(&copy, f->from_host.data, f->from_host.len);
	deliver(f, 0, 1000);
	assert_int_equal(session_echo(f->session, 0, 0, &f->out), 0);
	session_receive(f->session, copy.data, copy.len, 0);
	assert_false(session_echo_due(f->session, 0));
	session_stats_get(f->session, &stats);
	assert_int_equal(stats.frames_replayed, 1);
	byte_buffer_fini(&copy);
}

static void a_host_of_another_version_is_answered_and_told_once(void **state)
{
	struct fixture *f = *state;

	session_begin(f->session);
	host_hello(f, VS_PROTOCOL_MAX + 1, VS_PROTOCOL_MAX + 3);
	host_hello(f, VS_PROTOCOL_MAX + 1, VS_PROTOCOL_MAX + 3);
	deliver(f, 0, 1000);
	assert_int_equal(session_state(f->session), SESSION_REFUSED);
	assert_int_equal(f->n_said, 1);
	assert_non_null(strstr(f->said, "9.9"));
	send_hello(f, 0); /* so that it can say so, too */
	host_echo(f, 1);
	deliver(f, 0, 1000);
	assert_int_equal(session_state(f->session), SESSION_REFUSED);
	host_hello(f, VS_PROTOCOL_MIN, VS_PROTOCOL_MAX + 3);
	deliver(f, 0, 1000);
	assert_int_equal(session_state(f->session), SESSION_OPEN);
}

static void unknown_kinds_are_counted_and_said_once(void **state)
{
	struct fixture *f = *state;
	struct session_stats stats;

	session_begin(f->session);
	for (int i = 0; i < 3; i++) {
		byte_buffer_append(&f->payload, "x", 1);
		host_write(f, (enum frame_kind)99);
	}
	deliver(f, 0, 1000);
	session_stats_get(f->session, &stats);
	assert_int_equal(stats.frames_unexpected, 3);
	assert_int_equal(f->n_said, 1);
}

static void an_echo_flood_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct session_stats stats;

	session_begin(f->session);
	for (uint32_t i = 0; i < SESSION_ECHOES_MAX + 10; i++)
		host_echo(f, i);
	deliver(f, 0, 100000);
	session_stats_get(f->session, &stats);
	assert_int_equal(stats.echoes_refused, 10);
	for (int i = 0; i < SESSION_ECHOES_MAX; i++)
		assert_int_equal(session_echo(f->session, 0, 0, &f->out), 0);
	assert_false(session_echo_due(f->session, 0));
}

/* HELLOs of ever new sessions, each with a frame of unknown kind, bytes that are no frame, and many
 * echoes: what is answered and said does not grow with it. */
static void a_flood_of_sessions_is_answered_and_said_at_a_rate(void **state)
{
	struct fixture *f = *state;
	int hellos = 0, echoes = 0;

	session_begin(f->session);
	for (uint64_t i = 0; i < 3000; i++) {
		const uint64_t ms = 5000 + i; /* 3 s */

		host_restart(f, 10000 + i);
		host_hello(f, 1, 1);
		host_echo(f, 1);
		byte_buffer_append(&f->payload, "x", 1);
		host_write(f, (enum frame_kind)99);
		byte_buffer_append(&f->from_host, "no frame", 8);
		deliver(f, 0, 100000);
		if (session_hello_due(f->session, ms)) {
			send_hello(f, ms);
			hellos++;
		}
		f->out.len = 0;
		while (session_echo_due(f->session, ms)) {
			assert_int_equal(session_echo(f->session, ms, 0, &f->out), 0);
			echoes++;
		}
	}
	assert_in_range(hellos, 60, 4 * SESSION_HELLOS_PER_S);
	assert_in_range(echoes, 200, 4 * SESSION_ECHOES_PER_S);
	assert_in_range(f->n_said, 1, 2);
	/* And afterwards all is as before. */
	assert_true(session_hello_waits(f->session));
	send_hello(f, 9000);
	assert_false(session_hello_waits(f->session));
	host_echo(f, 2);
	deliver(f, 0, 1000);
	assert_true(session_echo_due(f->session, 9000));
}

static void half_a_frame_does_not_outlive_its_connection(void **state)
{
	struct fixture *f = *state;
	struct session_stats stats;

	session_begin(f->session);
	host_echo(f, 1);
	f->from_host.len -= 3;
	deliver(f, 0, 1000);
	session_end(f->session);
	session_begin(f->session);
	host_restart(f, 3003);
	host_echo(f, 2);
	deliver(f, 0, 1000);
	session_stats_get(f->session, &stats);
	assert_int_equal(stats.reader.frames, 1);
	assert_int_equal(stats.reader.skipped_bytes, 0);
	assert_int_equal(f->n_said, 0);
}

static void host_config(struct fixture *f, uint32_t id)
{
	const struct message_config config = {.id = id, .asks = 1, .classes = 3};

	assert_int_equal(message_config_pack(&config, &f->payload), 0);
	host_write(f, FRAME_CONFIG);
}

static void the_newest_config_is_taken_once_and_dies_with_its_session(void **state)
{
	struct fixture *f = *state;
	struct session_stats stats;

	session_begin(f->session);
	host_config(f, 1);
	deliver(f, 0, 1000);
	assert_null(session_config_take(f->session)); /* who asks has not introduced itself */
	host_hello(f, 1, 1);
	host_config(f, 2);
	host_config(f, 3);
	deliver(f, 0, 7);
	assert_int_equal(session_config_take(f->session)->id, 3);
	assert_null(session_config_take(f->session));
	host_config(f, 4);
	assert_int_equal(byte_buffer_append(&f->payload, "\x0a", 1), 0);
	host_write(f, FRAME_CONFIG); /* garbage */
	deliver(f, 0, 1000);
	session_stats_get(f->session, &stats);
	assert_int_equal(stats.configs, 4);
	assert_int_equal(stats.frames_malformed, 1);
	session_end(f->session);
	assert_null(session_config_take(f->session));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(hello_repeats_until_the_host_is_heard),
		TEST(an_echo_carries_both_stamps_and_opens_the_session),
		TEST(frames_are_numbered_from_zero_in_each_session),
		TEST(a_host_that_came_back_unnoticed_gets_a_new_session),
		TEST(garbage_costs_only_itself_and_is_said_once),
		TEST(a_damaged_frame_is_counted_and_the_next_one_read),
		TEST(a_replayed_frame_is_not_answered),
		TEST(a_host_of_another_version_is_answered_and_told_once),
		TEST(unknown_kinds_are_counted_and_said_once),
		TEST(an_echo_flood_is_bounded),
		TEST(a_flood_of_sessions_is_answered_and_said_at_a_rate),
		TEST(the_newest_config_is_taken_once_and_dies_with_its_session),
		TEST(half_a_frame_does_not_outlive_its_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
