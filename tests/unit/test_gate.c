/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the gate of a listening channel: which connections are closed in favour of others, and
 * when. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/decode/gate.h"

enum { MOST = 4, NOW_MS = 1000, SPOKEN_MAX = 8 /* plain connections that are talked to */ };

struct rig {
	struct tls_psk psk;
	struct message_hello hello;
	struct message_config request;
	struct peer_kind kind;
	struct peer *chosen;
	struct gate *gate;
	int listener[2]; /* the gate's, the collector's */
	char said[512];
};

static void on_note(void *context, enum note_kind kind, const char *text)
{
	struct rig *r = context;

	(void)kind;
	snprintf(r->said, sizeof(r->said), "%s", text);
}

static void on_hello(void *context, const struct message_hello *hello)
{
	(void)context, (void)hello;
}

static void on_frame(void *context, const struct frame_view *frame, uint64_t arrival_tsc)
{
	(void)context, (void)frame, (void)arrival_tsc;
}

static void gate_open(struct rig *r, size_t most, bool tls)
{
	if (tls)
		r->psk = (struct tls_psk){.identity = "vm1", .key = {1, 2, 3}, .key_bytes = 16};
	r->hello = (struct message_hello){
		.protocol_min = 1, .protocol_max = 1, .role = STREAM_ROLE_HOST};
	r->kind = (struct peer_kind){
		.hello = &r->hello,
		.request = &r->request,
		.psk = &r->psk,
		.to = {.frame = on_frame, .hello = on_hello, .note = on_note, .context = r}};
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, r->listener),
		0);
	r->gate = gate_new(r->listener[0], most, &r->kind, &r->chosen);
	assert_non_null(r->gate);
}

static int rig_setup(void **state)
{
	*state = calloc(1, sizeof(struct rig));
	return 0;
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	gate_free(r->gate);
	peer_close(r->chosen);
	close(r->listener[0]);
	close(r->listener[1]);
	free(r);
	return 0;
}

/* The other end of a connection that was handed to the gate. */
static int arrive(struct rig *r)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(gate_hand(r->listener[1], pair[0]), 0);
	assert_int_equal(gate_turn(r->gate, NOW_MS, 0), 0);
	return pair[1];
}

static bool is_open(int fd)
{
	char bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), 0) > 0)
		;
	return recv(fd, bytes, 1, 0) < 0 && errno == EAGAIN;
}

static void expect_open(const int *fds, size_t n, const char *wanted)
{
	char got[64] = "";

	for (size_t i = 0; i < n; i++)
		got[i] = is_open(fds[i]) ? '1' : '0';
	assert_string_equal(got, wanted);
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

static void say(struct rig *r, int fd, const char *bytes)
{
	assert_int_equal(write(fd, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
	assert_int_equal(gate_turn(r->gate, NOW_MS, 0), 0);
}

static void agent_hello(int fd)
{
	const struct message_hello hello = {.protocol_min = 1,
					    .protocol_max = 1,
					    .role = STREAM_ROLE_GUEST,
					    .clock = STREAM_CLOCK_GUEST_TSC,
					    .clock_hz = 1};
	struct byte_buffer payload = {0}, wire = {0};
	struct frame_writer *writer = frame_writer_new(1);

	assert_int_equal(message_hello_pack(&hello, &payload), 0);
	assert_int_equal(frame_write(writer, FRAME_HELLO, payload.data, payload.len, &wire), 0);
	assert_int_equal(write(fd, wire.data, wire.len), (ssize_t)wire.len);
	frame_writer_free(writer);
	byte_buffer_fini(&payload);
	byte_buffer_fini(&wire);
}

/* ---- properties ---- */

static void test_the_oldest_silent_one_makes_room(void **state)
{
	struct rig *r = *state;
	int fds[7];

	gate_open(r, MOST, true);
	for (int i = 0; i < 6; i++)
		fds[i] = arrive(r);
	expect_open(fds, 6, "001111");
	say(r, fds[2], "\x16"); /* has said something, so it is worth more */
	fds[6] = arrive(r);
	expect_open(fds, 7, "0010111");
	assert_int_equal(gate_waiting(r->gate), MOST);
	gate_tick(r->gate, NOW_MS + 1000);
	assert_non_null(strstr(r->said, "more connections than can wait"));
	close_all(fds, 7);
	assert_int_equal(gate_turn(r->gate, NOW_MS, 0), 0);
	assert_int_equal(gate_waiting(r->gate), 0);
}

static void test_nobody_stays_long_without_tls(void **state)
{
	struct rig *r = *state;
	int fds[3];

	gate_open(r, MOST, true);
	for (int i = 0; i < 3; i++)
		fds[i] = arrive(r);
	say(r, fds[0], "\x16");
	gate_tick(r->gate, NOW_MS + GATE_PROVE_MS - 1);
	expect_open(fds, 3, "111");
	gate_tick(r->gate, NOW_MS + GATE_PROVE_MS);
	expect_open(fds, 3, "000");
	assert_string_equal(r->said, "refused: no TLS handshake for 5 s (connections closed: 3)");
	close_all(fds, 3);
}

static void test_one_may_stay_on_a_plain_port(void **state)
{
	struct rig *r = *state;
	int fds[3];

	gate_open(r, MOST, false);
	for (int i = 0; i < 3; i++)
		fds[i] = arrive(r);
	gate_tick(r->gate, NOW_MS + GATE_PROVE_MS);
	expect_open(fds, 3, "001");
	gate_tick(r->gate, NOW_MS + 10 * GATE_PROVE_MS);
	expect_open(fds, 3, "001");
	close_all(fds, 3);
}

/* More talk than are talked to: silent ones wait on, the agent is heard. */
static void test_talkers_do_not_displace_who_waits(void **state)
{
	enum { TALKERS = 3 * SPOKEN_MAX };
	struct guest_session_stats stats = {0};
	struct rig *r = *state;
	int fds[TALKERS], agent;

	gate_open(r, GATE_WAITING_MAX, false);
	agent = arrive(r);
	for (int i = 0; i < TALKERS; i++) {
		fds[i] = arrive(r);
		say(r, fds[i], "what is no frame");
	}
	for (int i = 0; i < TALKERS - SPOKEN_MAX; i++)
		assert_false(is_open(fds[i]));
	assert_true(is_open(agent));
	agent_hello(agent);
	assert_int_equal(gate_turn(r->gate, NOW_MS, 0), 0);
	assert_non_null(r->chosen);
	gate_stats_add(r->gate, &stats);
	assert_int_equal(stats.bytes, TALKERS * strlen("what is no frame"));
	gate_free(r->gate);
	r->gate = NULL;
	assert_true(is_open(agent));
	for (int i = 0; i < TALKERS; i++)
		assert_false(is_open(fds[i]));
	close_all(fds, TALKERS);
	close(agent);
}

static void test_a_closed_door_is_the_end(void **state)
{
	struct rig *r = *state;

	gate_open(r, MOST, false);
	shutdown(r->listener[1], SHUT_RDWR);
	assert_int_equal(gate_turn(r->gate, NOW_MS, 0), -EPIPE);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG(test_the_oldest_silent_one_makes_room),
		RIG(test_nobody_stays_long_without_tls),
		RIG(test_one_may_stay_on_a_plain_port),
		RIG(test_talkers_do_not_displace_who_waits),
		RIG(test_a_closed_door_is_the_end),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
