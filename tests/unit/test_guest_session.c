/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the host's side of the protocol with a simulated agent: round trips are paired, damaged
 * bytes cost only the damaged frames, replays and other protocols are dropped, and each problem is
 * reported once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/decode/guest_session.h"

struct rig {
	struct guest_session *session;
	struct frame_writer *agent;
	struct byte_buffer wire, payload; /* agent -> host */
	struct frame_reader sent;         /* host -> agent */
	struct frame_unpacker *unpacker;
	uint64_t tsc, now_ms;
	bool blocked;
	/* what came out */
	size_t frames, hellos, heartbeats, observations, notes;
	struct message_echo_observation last;
	char note[VS_TEXT_MAX];
	enum note_kind note_kind;
};

static void on_frame(void *context, const struct frame_view *frame, uint64_t arrival_tsc)
{
	struct rig *r = context;

	assert_int_equal(frame->len, VS_FRAME_HEADER_BYTES + frame->header.payload_bytes);
	assert_true(arrival_tsc > 0);
	r->frames++;
}

static void on_observation(void *context, const struct message_echo_observation *o)
{
	struct rig *r = context;

	r->observations++;
	r->last = *o;
}

static void on_hello(void *context, const struct message_hello *hello)
{
	struct rig *r = context;

	assert_int_equal(hello->role, STREAM_ROLE_GUEST);
	r->hellos++;
}

static void on_heartbeat(void *context, const struct message_heartbeat *h)
{
	struct rig *r = context;

	assert_int_equal(h->emitted, 77);
	r->heartbeats++;
}

static void on_note(void *context, enum note_kind kind, const char *text)
{
	struct rig *r = context;

	r->notes++;
	r->note_kind = kind;
	snprintf(r->note, sizeof(r->note), "%s", text);
}

static bool on_send(void *context, const uint8_t *bytes, size_t len, uint64_t *sent_tsc)
{
	struct rig *r = context;

	*sent_tsc = ++r->tsc;
	if (r->blocked)
		return false;
	assert_int_equal(frame_reader_push(&r->sent, bytes, len), 0);
	return true;
}

static int rig_setup(void **state)
{
	static struct message_hello ours = {.protocol_min = 1,
					    .protocol_max = 1,
					    .role = STREAM_ROLE_HOST,
					    .clock = STREAM_CLOCK_HOST_TSC,
					    .clock_hz = 1000000000};
	struct rig *r = calloc(1, sizeof(*r));
	const struct guest_session_events events = {.frame = on_frame,
						    .observation = on_observation,
						    .hello = on_hello,
						    .heartbeat = on_heartbeat,
						    .note = on_note,
						    .send = on_send,
						    .context = r};

	r->session = guest_session_new(&ours, &events);
	r->agent = frame_writer_new(0x1111);
	r->unpacker = frame_unpacker_new();
	frame_reader_init(&r->sent);
	r->now_ms = 1000;
	r->tsc = 1000000;
	*state = r;
	return guest_session_start(r->session, r->now_ms);
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	guest_session_free(r->session);
	frame_writer_free(r->agent);
	frame_unpacker_free(r->unpacker);
	frame_reader_fini(&r->sent);
	byte_buffer_fini(&r->wire);
	byte_buffer_fini(&r->payload);
	free(r);
	return 0;
}

/* ---- the agent's side ---- */

static void agent_frame(struct rig *r, enum frame_kind kind)
{
	assert_int_equal(frame_write(r->agent, kind, r->payload.data, r->payload.len, &r->wire), 0);
	r->payload.len = 0;
}

static void agent_hello(struct rig *r, uint32_t protocol_min, enum stream_role role)
{
	static struct message_hello hello;

	hello = (struct message_hello){.protocol_min = protocol_min,
				       .protocol_max = protocol_min,
				       .role = role,
				       .clock = STREAM_CLOCK_GUEST_TSC,
				       .clock_hz = 2000000000,
				       .program_version = "9.9"};
	message_hello_pack(&hello, &r->payload);
	agent_frame(r, FRAME_HELLO);
}

static void agent_heartbeat(struct rig *r)
{
	const struct message_heartbeat h = {.time = 5, .emitted = 77};

	message_heartbeat_pack(&h, &r->payload);
	agent_frame(r, FRAME_HEARTBEAT);
}

static void agent_reply(struct rig *r, uint32_t id, uint64_t received, uint64_t sent)
{
	const struct message_echo_reply reply = {id, received, sent};

	message_echo_reply_pack(&reply, &r->payload);
	agent_frame(r, FRAME_ECHO_REPLY);
}

static void deliver(struct rig *r)
{
	r->tsc += 100;
	assert_int_equal(
		guest_session_receive(r->session, r->wire.data, r->wire.len, r->tsc, r->now_ms), 0);
	r->wire.len = 0;
}

static void elapse(struct rig *r, unsigned int ms)
{
	for (unsigned int passed = 0; passed < ms; passed += 50) {
		r->now_ms += 50;
		guest_session_tick(r->session, r->now_ms);
	}
}

/* Frames of `kind` that the host sent since the last call; the last echo request's id. */
static size_t host_sent(struct rig *r, enum frame_kind kind, uint32_t *id)
{
	struct frame_view frame;
	size_t n = 0;

	while (frame_reader_next(&r->sent, &frame)) {
		struct message_echo_request request;
		const uint8_t *payload;
		size_t len;

		if (frame.header.kind != kind)
			continue;
		n++;
		if (kind != FRAME_ECHO_REQUEST)
			continue;
		assert_int_equal(frame_unpack(r->unpacker, &frame, &payload, &len), 0);
		assert_int_equal(message_echo_request_unpack(payload, len, &request), 0);
		if (id)
			*id = request.id;
	}
	return n;
}

static struct guest_session_stats stats_of(struct rig *r)
{
	struct guest_session_stats stats;

	guest_session_stats_get(r->session, &stats);
	return stats;
}

static void agent_hello_with(struct rig *r, uint64_t features)
{
	const struct message_hello hello = {.protocol_min = 1,
					    .protocol_max = 1,
					    .role = STREAM_ROLE_GUEST,
					    .clock = STREAM_CLOCK_GUEST_TSC,
					    .clock_hz = 2000000000,
					    .program_version = "9.9",
					    .features = features};

	message_hello_pack(&hello, &r->payload);
	agent_frame(r, FRAME_HELLO);
	deliver(r);
}

/* ---- properties ---- */

static void test_hello_repeats_until_answered(void **state)
{
	struct rig *r = *state;

	elapse(r, 3000);
	assert_int_equal(host_sent(r, FRAME_HELLO, NULL), 4); /* at once, then every second */
	agent_hello(r, 1, STREAM_ROLE_GUEST);
	deliver(r);
	assert_int_equal(r->hellos, 1);
	assert_true(stats_of(r).hello_known);
	elapse(r, 1000); /* the agent has not proved that it heard ours */
	assert_true(host_sent(r, FRAME_HELLO, NULL) >= 1);
	agent_heartbeat(r);
	deliver(r);
	assert_int_equal(r->heartbeats, 1);
	elapse(r, 3000);
	assert_int_equal(host_sent(r, FRAME_HELLO, NULL), 0);
}

static void test_echo_waits_for_hello_then_slows_down(void **state)
{
	struct rig *r = *state;
	size_t fast, slow;

	elapse(r, 1000);
	assert_int_equal(host_sent(r, FRAME_ECHO_REQUEST, NULL), 0);
	agent_hello(r, 1, STREAM_ROLE_GUEST);
	deliver(r);
	elapse(r, 2000);
	fast = host_sent(r, FRAME_ECHO_REQUEST, NULL);
	elapse(r, 2000);
	slow = host_sent(r, FRAME_ECHO_REQUEST, NULL);
	assert_in_range(fast, 38, 41);
	assert_in_range(slow, 9, 11);
}

/* Live, the events of a batch wait for the next round trip. */
static void test_batches_bring_the_next_echo_forward(void **state)
{
	struct rig *r = *state;
	size_t n;

	agent_hello(r, 1, STREAM_ROLE_GUEST);
	deliver(r);
	elapse(r, 2500);
	host_sent(r, FRAME_ECHO_REQUEST, NULL);
	for (int i = 0; i < 40; i++) { /* one each 50 ms; what they contain does not matter */
		agent_frame(r, FRAME_BATCH);
		deliver(r);
		elapse(r, 50);
	}
	n = host_sent(r, FRAME_ECHO_REQUEST, NULL);
	assert_in_range(n, 19, 21);
	for (int i = 0; i < 40; i++) {
		agent_heartbeat(r);
		deliver(r);
		elapse(r, 50);
	}
	n = host_sent(r, FRAME_ECHO_REQUEST, NULL);
	assert_in_range(n, 9, 11);
}

static void test_round_trips_are_paired_once(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;
	uint64_t sent;

	agent_hello(r, 1, STREAM_ROLE_GUEST);
	deliver(r);
	elapse(r, 50);
	sent = r->tsc;
	assert_int_equal(host_sent(r, FRAME_ECHO_REQUEST, &id), 1);
	agent_reply(r, id + 1, 1, 2); /* never asked */
	agent_reply(r, id - 1, 1, 2);
	deliver(r);
	assert_int_equal(r->observations, 0);
	agent_reply(r, id, 500, 600);
	deliver(r);
	assert_int_equal(r->observations, 1);
	assert_int_equal(r->last.host_sent, sent);
	assert_int_equal(r->last.guest_received, 500);
	assert_int_equal(r->last.guest_sent, 600);
	assert_int_equal(r->last.host_received, r->tsc);
	agent_reply(r, id, 700, 800); /* answered before */
	deliver(r);
	assert_int_equal(r->observations, 1);
}

static void test_unsent_request_is_not_timed(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;

	agent_hello(r, 1, STREAM_ROLE_GUEST);
	deliver(r);
	elapse(r, 50);
	assert_int_equal(host_sent(r, FRAME_ECHO_REQUEST, &id), 1);
	r->blocked = true;
	elapse(r, 50);
	r->blocked = false;
	agent_reply(r, id + 1, 5, 6); /* a guess at what could not be sent */
	deliver(r);
	assert_int_equal(r->observations, 0);
}

static void test_garbage_costs_only_itself(void **state)
{
	struct rig *r = *state;
	uint8_t garbage[3000];

	srand(7);
	for (size_t i = 0; i < sizeof(garbage); i++)
		garbage[i] = (uint8_t)rand();
	memcpy(garbage + 1000, "VCSF\1", 5);
	agent_hello(r, 1, STREAM_ROLE_GUEST);
	agent_heartbeat(r);
	byte_buffer_append(&r->wire, garbage, sizeof(garbage));
	agent_heartbeat(r);
	{
		size_t at = r->wire.len;

		agent_heartbeat(r);
		r->wire.data[at + VS_FRAME_HEADER_BYTES] ^= 1;
	}
	agent_heartbeat(r);
	/* byte by byte, as the worst channel would */
	for (size_t i = 0; i < r->wire.len; i++)
		assert_int_equal(
			guest_session_receive(r->session, r->wire.data + i, 1, ++r->tsc, r->now_ms),
			0);
	assert_int_equal(r->heartbeats, 3);
	assert_int_equal(stats_of(r).frames, 4);
	assert_int_equal(stats_of(r).lost, 1);
	assert_true(stats_of(r).damaged >= 1);
	assert_true(stats_of(r).skipped_bytes >= sizeof(garbage));
	assert_int_equal(r->notes, 1);
	assert_int_equal(r->note_kind, NOTE_PROTOCOL);
}

static void test_torn_frame_does_not_hide_what_follows(void **state)
{
	struct rig *r = *state;
	size_t torn;

	agent_hello(r, 1, STREAM_ROLE_GUEST);
	for (int i = 0; i < 4000; i++) {
		uint8_t byte = (uint8_t)(rand() >> 3);

		byte_buffer_append(&r->payload, &byte, 1);
	}
	torn = r->wire.len;
	agent_frame(r, FRAME_BATCH);
	r->wire.len = torn + 100; /* the agent died here; its successor speaks: */
	frame_writer_free(r->agent);
	r->agent = frame_writer_new(0x2222);
	agent_hello(r, 1, STREAM_ROLE_GUEST);
	deliver(r);
	assert_int_equal(r->hellos, 1);
	elapse(r, 3200);
	assert_int_equal(r->hellos, 2);
}

static void test_replays_are_dropped(void **state)
{
	struct rig *r = *state;
	struct byte_buffer copy = {0};

	agent_hello(r, 1, STREAM_ROLE_GUEST);
	agent_heartbeat(r);
	byte_buffer_append(&copy, r->wire.data, r->wire.len);
	deliver(r);
	byte_buffer_append(&r->wire, copy.data, copy.len);
	byte_buffer_append(&r->wire, copy.data, copy.len);
	deliver(r);
	agent_heartbeat(r);
	deliver(r);
	assert_int_equal(r->heartbeats, 2);
	assert_int_equal(stats_of(r).replayed, 4);
	assert_int_equal(stats_of(r).lost, 0);
	assert_int_equal(r->notes, 1);
	byte_buffer_fini(&copy);
}

static void test_foreign_protocol_is_refused_as_a_whole(void **state)
{
	struct rig *r = *state;

	agent_hello(r, VS_PROTOCOL_MAX + 1, STREAM_ROLE_GUEST);
	agent_heartbeat(r);
	agent_heartbeat(r);
	deliver(r);
	assert_int_equal(r->frames, 0);
	assert_int_equal(r->heartbeats, 0);
	assert_true(stats_of(r).refusing);
	assert_int_equal(stats_of(r).refused, 3);
	assert_int_equal(r->notes, 1);
	assert_non_null(strstr(r->note, "agent 9.9 speaks protocol 2 to 2"));
	elapse(r, 500);
	assert_int_equal(host_sent(r, FRAME_ECHO_REQUEST, NULL), 0);
	/* replaced by one that we understand */
	frame_writer_free(r->agent);
	r->agent = frame_writer_new(0x3333);
	agent_hello(r, 1, STREAM_ROLE_GUEST);
	agent_heartbeat(r);
	deliver(r);
	assert_false(stats_of(r).refusing);
	assert_int_equal(r->heartbeats, 1);
	assert_int_equal(r->notes, 1);
}

static void test_host_kinds_are_not_a_guests_to_send(void **state)
{
	static const enum frame_kind kinds[] = {
		FRAME_VM_INFO,       FRAME_ECHO_OBSERVATION, FRAME_STACK,       FRAME_NOTE,
		FRAME_RECORDING_END, FRAME_VM_CLOCK,         FRAME_ECHO_REQUEST};
	struct rig *r = *state;

	agent_hello(r, 1, STREAM_ROLE_GUEST);
	deliver(r);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		byte_buffer_append(&r->payload, "\x08\x01", 2);
		agent_frame(r, kinds[i]);
	}
	deliver(r);
	assert_int_equal(r->frames, 1);
	assert_int_equal(stats_of(r).refused, sizeof(kinds) / sizeof(kinds[0]));
	agent_hello(r, 1, STREAM_ROLE_HOST); /* our own bytes, reflected */
	deliver(r);
	assert_int_equal(r->frames, 1);
	assert_true(stats_of(r).refusing);
}

static void test_reconnect_starts_clean(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;

	agent_hello(r, 1, STREAM_ROLE_GUEST);
	agent_heartbeat(r);
	r->wire.len -= 5; /* the connection broke here */
	deliver(r);
	elapse(r, 50);
	assert_int_equal(host_sent(r, FRAME_ECHO_REQUEST, &id), 1);
	assert_int_equal(guest_session_start(r->session, r->now_ms), 0);
	assert_false(stats_of(r).hello_known);
	frame_writer_free(r->agent);
	r->agent = frame_writer_new(0x4444);
	agent_reply(r, id, 1, 2); /* to the old connection's request */
	agent_hello(r, 1, STREAM_ROLE_GUEST);
	agent_heartbeat(r);
	deliver(r);
	assert_int_equal(r->observations, 0);
	assert_int_equal(r->hellos, 2);
	assert_int_equal(r->heartbeats, 1);
	assert_int_equal(stats_of(r).damaged, 0);
	assert_int_equal(host_sent(r, FRAME_HELLO, NULL), 1);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

static const struct message_config request = {.asks = 1u << CONFIG_SAMPLE_HZ, .sample_hz = 99};

static void agent_config_reply(struct rig *r, uint32_t id)
{
	struct message_config_reply reply = {.id = id};

	message_config_reply_pack(&reply, &r->payload);
	agent_frame(r, FRAME_CONFIG_REPLY);
	deliver(r);
}

static void test_requests_go_to_an_agent_that_takes_them(void **state)
{
	struct rig *r = *state;
	size_t frames;

	guest_session_ask(r->session, &request);
	elapse(r, 1000);
	assert_int_equal(host_sent(r, FRAME_CONFIG, NULL), 0); /* of whom? */
	agent_hello_with(r, FEATURE_CONFIG | 1ull << 40);
	elapse(r, 100);
	assert_int_equal(host_sent(r, FRAME_CONFIG, NULL), 1);
	agent_config_reply(r, 1000); /* to somebody else's */
	elapse(r, 2000);
	assert_int_equal(host_sent(r, FRAME_CONFIG, NULL), 1); /* it may have got lost */
	frames = r->frames;
	agent_config_reply(r, 2);
	assert_int_equal(r->frames, frames + 1); /* for the recording */
	elapse(r, 20000);
	assert_int_equal(host_sent(r, FRAME_CONFIG, NULL), 0);
	assert_int_equal(r->notes, 0);
	/* A new session asks anew. */
	assert_int_equal(guest_session_start(r->session, r->now_ms), 0);
	frame_writer_free(r->agent);
	r->agent = frame_writer_new(0x3333);
	agent_hello_with(r, FEATURE_CONFIG);
	elapse(r, 100);
	assert_int_equal(host_sent(r, FRAME_CONFIG, NULL), 1);
}

static void test_an_agent_that_never_answers_is_asked_a_few_times(void **state)
{
	struct rig *r = *state;

	guest_session_ask(r->session, &request);
	agent_hello_with(r, FEATURE_CONFIG);
	elapse(r, 60000);
	assert_int_equal(host_sent(r, FRAME_CONFIG, NULL), 5);
	assert_int_equal(r->notes, 1);
	assert_int_equal(r->note_kind, NOTE_GUEST_CONFIG);
	assert_int_equal(stats_of(r).unanswered, 1);
}

static void test_an_older_agent_is_asked_nothing_and_that_is_said(void **state)
{
	struct rig *r = *state;

	guest_session_ask(r->session, &request);
	agent_hello_with(r, 0);
	elapse(r, 10000);
	assert_int_equal(host_sent(r, FRAME_CONFIG, NULL), 0);
	assert_int_equal(r->notes, 1);
	assert_non_null(strstr(r->note, "agent 9.9 takes no requests"));
}

static void test_without_requests_nothing_is_asked(void **state)
{
	struct rig *r = *state;

	agent_hello_with(r, FEATURE_CONFIG);
	elapse(r, 10000);
	assert_int_equal(host_sent(r, FRAME_CONFIG, NULL), 0);
	assert_int_equal(r->notes, 0);
}

/* Returns how many Configs the host sent; the last one is in *out. */
static size_t configs_sent(struct rig *r, struct message_config *out)
{
	struct frame_view frame;
	const uint8_t *payload;
	size_t len, n = 0;

	while (frame_reader_next(&r->sent, &frame)) {
		if (frame.header.kind != FRAME_CONFIG)
			continue;
		n++;
		memset(out, 0, sizeof(*out));
		assert_int_equal(frame_unpack(r->unpacker, &frame, &payload, &len), 0);
		assert_int_equal(message_config_unpack(payload, len, out), 0);
	}
	return n;
}

static void test_events_are_asked_of_an_agent_that_knows_them_only(void **state)
{
	static struct message_config asked, sent;
	struct rig *r = *state;

	asked = (struct message_config){.asks = 1u << CONFIG_EVENTS | 1u << CONFIG_SAMPLE_HZ,
					.sample_hz = 99,
					.n_events = 1,
					.events[0] = {.kind = USER_TRACEPOINT,
						      .system = "block",
						      .name = "block_rq_issue"}};
	guest_session_ask(r->session, &asked);
	agent_hello_with(r, FEATURE_CONFIG);
	elapse(r, 100);
	assert_int_equal(configs_sent(r, &sent), 1);
	assert_int_equal(sent.asks, 1u << CONFIG_SAMPLE_HZ);
	assert_int_equal(sent.n_events, 0);
	assert_int_equal(r->notes, 1);
	assert_int_equal(r->note_kind, NOTE_GUEST_CONFIG);
	assert_non_null(strstr(r->note, "agent 9.9 cannot capture the events of -e guest:"));
	/* A newer one takes its place. */
	assert_int_equal(guest_session_start(r->session, r->now_ms), 0);
	frame_writer_free(r->agent);
	r->agent = frame_writer_new(0x3333);
	agent_hello_with(r, FEATURE_CONFIG | FEATURE_EVENTS);
	elapse(r, 100);
	assert_int_equal(configs_sent(r, &sent), 1);
	assert_int_equal(sent.asks, asked.asks);
	assert_int_equal(sent.n_events, 1);
	assert_string_equal(sent.events[0].name, "block_rq_issue");
	assert_int_equal(r->notes, 1);
}

static void test_an_agent_that_does_not_look_is_named(void **state)
{
	static struct message_config asked, sent;
	struct rig *r = *state;

	asked = (struct message_config){.asks = 1u << CONFIG_LOOK | 1u << CONFIG_SAMPLE_HZ,
					.sample_hz = 99,
					.look_period_ns = 20000000,
					.look_when = "sched_switch == 0"};
	guest_session_ask(r->session, &asked);
	agent_hello_with(r, FEATURE_CONFIG | FEATURE_EVENTS);
	elapse(r, 100);
	assert_int_equal(configs_sent(r, &sent), 1);
	assert_int_equal(sent.asks, 1u << CONFIG_SAMPLE_HZ);
	assert_int_equal(sent.look_period_ns, 0);
	assert_string_equal(sent.look_when, "");
	assert_int_equal(r->notes, 1);
	assert_non_null(strstr(r->note, "agent 9.9 does not look (--guest-look) (it is older)"));
	/* A newer one takes its place. */
	assert_int_equal(guest_session_start(r->session, r->now_ms), 0);
	frame_writer_free(r->agent);
	r->agent = frame_writer_new(0x3333);
	agent_hello_with(r, FEATURE_CONFIG | FEATURE_EVENTS | FEATURE_LOOK);
	elapse(r, 100);
	assert_int_equal(configs_sent(r, &sent), 1);
	assert_int_equal(sent.asks, asked.asks);
	assert_int_equal(sent.look_period_ns, asked.look_period_ns);
	assert_string_equal(sent.look_when, asked.look_when);
	assert_int_equal(r->notes, 1);
}

static void test_nothing_is_left_to_ask_of_an_agent_without_events(void **state)
{
	static struct message_config asked = {.asks = 1u << CONFIG_EVENTS, .n_events = 1};
	struct rig *r = *state;

	guest_session_ask(r->session, &asked);
	agent_hello_with(r, FEATURE_CONFIG);
	elapse(r, 60000);
	assert_int_equal(host_sent(r, FRAME_CONFIG, NULL), 0);
	assert_int_equal(stats_of(r).unanswered, 0);
	assert_int_equal(r->notes, 1);
}

static void test_a_flood_of_descriptions_is_dropped_and_said_once(void **state)
{
	static struct message_user_events m = {.n = 1,
					       .events[0] = {.id = 1, .kind = USER_TRACEPOINT}};
	struct rig *r = *state;
	size_t frames;

	agent_hello_with(r, FEATURE_CONFIG | FEATURE_EVENTS);
	for (int second = 1; second <= 3; second++) {
		frames = r->frames;
		for (int i = 0; i < 50; i++) {
			message_user_events_pack(&m, &r->payload);
			agent_frame(r, FRAME_USER_EVENTS);
			deliver(r);
		}
		assert_int_equal(r->frames, frames + 8);
		assert_int_equal(stats_of(r).refused, 42 * (unsigned)second);
		elapse(r, 1000);
	}
	assert_int_equal(r->notes, 1);
	assert_non_null(strstr(r->note, "descriptions of events"));
	/* What an agent sends when it says hello, and after. */
	frames = r->frames;
	message_user_events_pack(&m, &r->payload);
	agent_frame(r, FRAME_USER_EVENTS);
	deliver(r);
	assert_int_equal(r->frames, frames + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG(test_events_are_asked_of_an_agent_that_knows_them_only),
		RIG(test_an_agent_that_does_not_look_is_named),
		RIG(test_nothing_is_left_to_ask_of_an_agent_without_events),
		RIG(test_a_flood_of_descriptions_is_dropped_and_said_once),
		RIG(test_hello_repeats_until_answered),
		RIG(test_echo_waits_for_hello_then_slows_down),
		RIG(test_batches_bring_the_next_echo_forward),
		RIG(test_round_trips_are_paired_once),
		RIG(test_unsent_request_is_not_timed),
		RIG(test_garbage_costs_only_itself),
		RIG(test_torn_frame_does_not_hide_what_follows),
		RIG(test_replays_are_dropped),
		RIG(test_foreign_protocol_is_refused_as_a_whole),
		RIG(test_host_kinds_are_not_a_guests_to_send),
		RIG(test_reconnect_starts_clean),
		RIG(test_requests_go_to_an_agent_that_takes_them),
		RIG(test_an_agent_that_never_answers_is_asked_a_few_times),
		RIG(test_an_older_agent_is_asked_nothing_and_that_is_said),
		RIG(test_without_requests_nothing_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
