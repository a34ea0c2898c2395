/* SPDX-License-Identifier: GPL-2.0-only */
/* Valid frames in a wrong order, number or speed, and misuse of the connection. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/e2e/hostile/attack.h"

static struct vs_event events[VS_BATCH_EVENTS_MAX];

static void flow_replay(struct attack *a)
{
	attack_hello(a);
	attack_sign_of_life(a);
	for (int i = 0; i < 500; i++)
		attack_send(a, a->wire.data, a->wire.len);
}

static void flow_replay_old_session(struct attack *a)
{
	struct byte_buffer old = {0};

	attack_hello(a);
	attack_sign_of_life(a);
	byte_buffer_append(&old, a->wire.data, a->wire.len);
	a->session++;
	a->seq = 0;
	attack_hello(a);
	for (int i = 0; i < 100; i++)
		attack_send(a, old.data, old.len);
	byte_buffer_fini(&old);
	attack_sign_of_life(a);
}

static void flow_sessions(struct attack *a)
{
	for (int i = 0; i < 2000; i++) {
		a->session = attack_random(a);
		a->seq = 0;
		attack_hello(a);
	}
	attack_sign_of_life(a);
}

/* Answers to what nobody asked, with as many lines of text as a guest may choose. */
static void flow_config_replies(struct attack *a)
{
	static struct message_config_reply reply;

	reply.n_limits = VS_CONFIG_LIMITS_MAX;
	for (size_t i = 0; i < VS_CONFIG_LIMITS_MAX; i++)
		snprintf(reply.limits[i].text, sizeof(reply.limits[i].text), "limit %zu: %060d", i,
			 0);
	attack_hello(a);
	for (int i = 0; i < 20000; i++) {
		a->payload.len = 0;
		if (message_config_reply_pack(&reply, &a->payload) ||
		    !attack_frame(a, FRAME_CONFIG_REPLY))
			break;
	}
	attack_sign_of_life(a);
}

static void flow_numbers_back(struct attack *a)
{
	attack_hello(a);
	a->seq = 1000;
	attack_sign_of_life(a);
	for (uint32_t i = 999; i > 500; i--) {
		a->seq = i;
		attack_sign_of_life(a);
	}
}

static void flow_numbers_skip(struct attack *a)
{
	attack_hello(a);
	for (int i = 0; i < 100; i++) {
		a->seq += 1000000;
		attack_sign_of_life(a);
	}
}

static void flow_hellos(struct attack *a)
{
	for (int i = 0; i < 3000; i++)
		attack_hello(a);
	attack_sign_of_life(a);
}

static void flow_no_hello(struct attack *a)
{
	for (int i = 0; i < 100; i++)
		attack_sign_of_life(a);
}

static void foreign_hello(struct attack *a, uint32_t protocol, enum stream_role role)
{
	static struct message_hello hello;

	hello_make(&hello);
	hello.protocol_min = hello.protocol_max = protocol;
	hello.role = role;
	a->payload.len = 0;
	message_hello_pack(&hello, &a->payload);
	attack_frame(a, FRAME_HELLO);
	for (int i = 0; i < 200; i++)
		attack_sign_of_life(a);
}

static void flow_protocol(struct attack *a)
{
	foreign_hello(a, 99, STREAM_ROLE_GUEST);
}

static void flow_says_host(struct attack *a)
{
	foreign_hello(a, 1, STREAM_ROLE_HOST);
}

static void flow_slow_loris(struct attack *a)
{
	attack_hello(a);
	for (int i = 0; i < 60; i++) { /* most of a header, a byte at a time */
		attack_send(a, "VCSF\x01\x02" + i % 6, 1);
		attack_sleep_ms(15);
	}
}

static void flow_torn(struct attack *a)
{
	struct frame_header h;

	attack_hello(a);
	memset(events, 0, sizeof(events));
	h = attack_header(a, FRAME_BATCH, events, 100000);
	attack_raw_frame(a, &h, events, 50000);
}

static void flow_garbage(struct attack *a)
{
	static uint8_t bytes[1 << 20];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)attack_random(a);
	for (int i = 0; i < 16; i++)
		attack_send(a, bytes, sizeof(bytes));
	attack_hello(a);
	attack_sign_of_life(a);
}

/* Every byte looks like the beginning of a frame. */
static void flow_magic(struct attack *a)
{
	static uint8_t bytes[1 << 20];

	for (size_t i = 0; i < sizeof(bytes); i += 4)
		memcpy(bytes + i, "VCSF", 4);
	for (int i = 0; i < 8; i++)
		attack_send(a, bytes, sizeof(bytes));
	attack_hello(a);
	attack_sign_of_life(a);
}

/* Good headers of the largest frames, whose payloads are such headers again. */
static void flow_nested_headers(struct attack *a)
{
	static uint8_t bytes[VS_FRAME_PAYLOAD_MAX];
	struct frame_header h;

	attack_hello(a);
	for (int i = 0; i < 10; i++) {
		h = attack_header(a, FRAME_BATCH, bytes, sizeof(bytes));
		h.payload_crc ^= 1;
		attack_raw_frame(a, &h, bytes, 36);
	}
	attack_send(a, bytes, sizeof(bytes));
	attack_send(a, bytes, sizeof(bytes));
	for (int i = 0; i < 40; i++)
		attack_sign_of_life(a);
}

static void flow_storm(struct attack *a)
{
	struct pollfd served;

	for (int i = 0; i < 60; i++) {
		attack_close(a);
		attack_sleep_ms(5);
		attack_connect(a);
	}
	served = (struct pollfd){.fd = a->fd, .events = POLLIN};
	poll(&served, 1, 10000); /* greeted: this one is no longer in the queue */
	attack_hello(a);
	attack_sign_of_life(a);
}

static void flow_half_closed(struct attack *a)
{
	attack_hello(a);
	attack_sign_of_life(a);
	shutdown(a->fd, SHUT_WR);
	attack_sleep_ms(300);
}

static void flow_never_reads(struct attack *a)
{
	int small = 1;

	setsockopt(a->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	attack_hello(a);
	attack_sleep_ms(700);
	attack_sign_of_life(a);
}

static void flow_echoes_unasked(struct attack *a)
{
	attack_hello(a);
	for (uint32_t i = 0; i < 20000; i++) {
		a->payload.len = 0;
		message_echo_reply_pack(&(struct message_echo_reply){i, attack_random(a), 1},
					&a->payload);
		if (!attack_frame(a, FRAME_ECHO_REPLY))
			return;
	}
	attack_sign_of_life(a);
}

static void flow_log_flood(struct attack *a)
{
	static struct message_kernel_log log;

	log.n_lines = VS_LOG_LINES_MAX;
	for (size_t i = 0; i < log.n_lines; i++) {
		memset(log.lines[i].text, '#', sizeof(log.lines[i].text) - 1);
		log.lines[i].dmesg_us = attack_random(a);
	}
	attack_hello(a);
	for (int i = 0; i < 300; i++) {
		a->payload.len = 0;
		message_kernel_log_pack(&log, &a->payload);
		attack_frame(a, FRAME_KERNEL_LOG);
	}
	attack_sign_of_life(a);
}

/* `n` tasks, each named once, each another name and pid. */
static void names(struct attack *a, uint32_t n)
{
	attack_hello(a);
	for (uint32_t at = 0; at < n; at += VS_BATCH_EVENTS_MAX) {
		events_make(events, VS_BATCH_EVENTS_MAX, 0, 1000000 + at * 1000ull, at);
		for (uint32_t i = 0; i < VS_BATCH_EVENTS_MAX; i++) {
			char name[17];

			snprintf(name, sizeof(name), "task-%010u", at + i);
			events[i].type = VS_EVENT_TASK_NAME;
			events[i].pid = events[i].pid2 = (int32_t)(at + i + 2);
			memcpy(&events[i].arg0, name, 8);
			memcpy(&events[i].arg1, name + 8, 8);
		}
		if (!attack_batch(a, events, VS_BATCH_EVENTS_MAX, 0))
			return;
	}
	attack_sign_of_life(a);
}

static void flow_names(struct attack *a)
{
	a->until_ms += 20000;
	names(a, 1000000);
}

static void flow_pids(struct attack *a)
{
	attack_hello(a);
	for (uint32_t at = 0; at < 500000; at += VS_BATCH_EVENTS_MAX) {
		events_make(events, VS_BATCH_EVENTS_MAX, 0, 1000000 + at * 1000ull, at);
		for (uint32_t i = 0; i < VS_BATCH_EVENTS_MAX; i++) {
			events[i].type = VS_EVENT_SCHED_SWITCH;
			events[i].pid = (int32_t)(at + i + 1);
			events[i].pid2 = (int32_t)(at + i + 2);
		}
		if (!attack_batch(a, events, VS_BATCH_EVENTS_MAX, 0))
			return;
	}
	attack_sign_of_life(a);
}

/* A good stream, as fast as it goes, ten times what the channel's budget allows. */
static void flow_tenfold(struct attack *a)
{
	uint64_t end = attack_now_ms() + 1500;
	uint32_t seq = 0;

	a->until_ms += 5000;
	attack_hello(a);
	while (attack_now_ms() < end) {
		events_make(events, 4000, 0, 1000000 + seq * 1000ull, seq);
		for (size_t i = 0; i < 4000; i++) /* hard to compress */
			events[i].arg0 = attack_random(a) << 20 ^ attack_random(a);
		seq += 4000;
		if (!attack_batch(a, events, 4000, 0))
			return;
	}
	attack_sign_of_life(a);
}

static void flow_heartbeats(struct attack *a)
{
	static struct message_heartbeat beat;

	attack_hello(a);
	for (uint64_t i = 0; i < 1000; i++) {
		beat.time = i % 2 ? UINT64_MAX - i : i;
		beat.emitted = attack_random(a);
		beat.dropped_user = attack_random(a);
		beat.sample.tsc = attack_random(a);
		beat.sample.monotonic_ns = UINT64_MAX;
		a->payload.len = 0;
		message_heartbeat_pack(&beat, &a->payload);
		attack_frame(a, FRAME_HEARTBEAT);
	}
	attack_sign_of_life(a);
}

static void flow_tiny(struct attack *a)
{
	attack_hello(a);
	for (int i = 0; i < 30000; i++) {
		if (!attack_sign_of_life(a))
			return;
	}
}

static void flow_silence(struct attack *a)
{
	attack_sleep_ms(300);
	(void)a;
}

static const struct {
	const char *name;
	void (*play)(struct attack *a);
	unsigned int expect;
} flows[] = {
	{"a frame sent 500 times again", flow_replay, EXPECT_REPLAYED},
	{"frames of an older session", flow_replay_old_session, EXPECT_REPLAYED},
	{"2000 sessions", flow_sessions, EXPECT_ACCEPTED},
	{"20000 answers to no configuration", flow_config_replies, EXPECT_ACCEPTED},
	{"numbers that run backwards", flow_numbers_back, EXPECT_REPLAYED},
	{"numbers that skip millions", flow_numbers_skip, EXPECT_LOST},
	{"3000 hellos", flow_hellos, EXPECT_ACCEPTED},
	{"no hello", flow_no_hello, EXPECT_ACCEPTED | EXPECT_REFUSED},
	{"protocol 99", flow_protocol, EXPECT_REFUSED},
	{"says that it is a host", flow_says_host, EXPECT_REFUSED},
	{"a byte every 15 ms", flow_slow_loris, EXPECT_ACCEPTED},
	{"half a frame, then nothing", flow_torn, EXPECT_ACCEPTED},
	{"16 MiB of random bytes", flow_garbage, EXPECT_DAMAGED},
	{"8 MiB of frames' beginnings", flow_magic, EXPECT_DAMAGED},
	{"headers within headers", flow_nested_headers, EXPECT_DAMAGED},
	{"60 connections, each closed at once", flow_storm, EXPECT_ACCEPTED},
	{"closes its sending half", flow_half_closed, EXPECT_ACCEPTED},
	{"never reads", flow_never_reads, EXPECT_ACCEPTED},
	{"20000 echo replies nobody asked for", flow_echoes_unasked, EXPECT_ACCEPTED},
	{"19200 log lines", flow_log_flood, EXPECT_ACCEPTED},
	{"a million names of tasks", flow_names, EXPECT_ACCEPTED},
	{"500000 pids", flow_pids, EXPECT_ACCEPTED},
	{"a good stream at ten times the budget", flow_tenfold, EXPECT_ACCEPTED},
	{"heartbeats from the end of time", flow_heartbeats, EXPECT_ACCEPTED},
	{"30000 tiny frames", flow_tiny, EXPECT_ACCEPTED},
	{"silence", flow_silence, EXPECT_NOTHING},
};
enum { N_FLOWS = sizeof(flows) / sizeof(flows[0]) };

static void play_flow(struct attack *a, unsigned int variant)
{
	flows[variant].play(a);
}

bool flow_case(size_t i, struct attack_case *out)
{
	if (i < N_FLOWS)
		*out = (struct attack_case){"flow", flows[i].name, play_flow, (unsigned int)i,
					    flows[i].expect};
	return i < N_FLOWS;
}
