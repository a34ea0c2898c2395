/* SPDX-License-Identifier: GPL-2.0-only */
/* Valid messages of every kind that are then damaged in every way, in frames with valid CRCs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/hostile/attack.h"

static void pack_hello(struct attack *a)
{
	static struct message_hello hello;

	hello_make(&hello);
	message_hello_pack(&hello, &a->payload);
}

static void pack_batch(struct attack *a)
{
	struct vs_event events[100];
	const struct batch b = {.n_events = 100, .events = events, .emitted = 100};

	events_make(events, 100, 0, 1000000, 0);
	batch_encode(a->encoder, &b, &a->payload);
}

static void pack_heartbeat(struct attack *a)
{
	static const struct message_heartbeat beat = {.time = 5000000,
						      .cpu_time_ns = 1,
						      .rss_bytes = 2,
						      .emitted = 100,
						      .delivered = 100,
						      .dmesg = {true, 5000000, 17, 3},
						      .steal = {.known = true, .n_cpus = 8}};

	message_heartbeat_pack(&beat, &a->payload);
}

static void pack_echo_reply(struct attack *a)
{
	message_echo_reply_pack(&(struct message_echo_reply){3, 4, 5}, &a->payload);
}

static void pack_clock_sample(struct attack *a)
{
	message_clock_sample_pack(&(struct message_clock_sample){1, 2, 3, 4, 5}, &a->payload);
}

static void pack_kernel_log(struct attack *a)
{
	static struct message_kernel_log log;

	log.n_lines = 10;
	for (size_t i = 0; i < log.n_lines; i++)
		snprintf(log.lines[i].text, sizeof(log.lines[i].text), "line %zu", i);
	message_kernel_log_pack(&log, &a->payload);
}

static void pack_stack(struct attack *a)
{
	static struct message_stack stack;

	stack.id = 1;
	stack.n_frames = 20;
	for (size_t i = 0; i < stack.n_frames; i++)
		snprintf(stack.frames[i].symbol, sizeof(stack.frames[i].symbol), "f%zu", i);
	message_stack_pack(&stack, &a->payload);
}

static void pack_user_events(struct attack *a)
{
	static struct message_user_events events;

	events.n = VS_USER_EVENTS_MAX;
	for (size_t i = 0; i < events.n; i++) {
		struct message_user_event *e = &events.events[i];

		e->id = (uint32_t)i + 1;
		e->kind = USER_TRACEPOINT;
		snprintf(e->system, sizeof(e->system), "sched");
		snprintf(e->name, sizeof(e->name), "event%zu", i);
		e->n_fields = VS_USER_FIELDS_MAX;
		for (size_t k = 0; k < e->n_fields; k++) {
			snprintf(e->fields[k].name, sizeof(e->fields[k].name), "f%zu", k);
			e->fields[k].type = USER_HEX;
			e->fields[k].bytes = 8;
		}
	}
	message_user_events_pack(&events, &a->payload);
}

static const struct {
	const char *name;
	enum frame_kind kind;
	void (*pack)(struct attack *a);
} messages[] = {
	{"hello", FRAME_HELLO, pack_hello},
	{"batch", FRAME_BATCH, pack_batch},
	{"heartbeat", FRAME_HEARTBEAT, pack_heartbeat},
	{"echo reply", FRAME_ECHO_REPLY, pack_echo_reply},
	{"clock sample", FRAME_CLOCK_SAMPLE, pack_clock_sample},
	{"kernel log", FRAME_KERNEL_LOG, pack_kernel_log},
	{"guest stack", FRAME_GUEST_STACK, pack_stack},
	{"user events", FRAME_USER_EVENTS, pack_user_events},
};

static void spoil_nothing(struct byte_buffer *b, struct attack *a)
{
	(void)a;
	b->len = 0;
}

static void spoil_random(struct byte_buffer *b, struct attack *a)
{
	byte_buffer_reserve(b, 5000);
	b->len = 5000;
	for (size_t i = 0; i < b->len; i++)
		b->data[i] = (uint8_t)attack_random(a);
}

static void spoil_half(struct byte_buffer *b, struct attack *a)
{
	(void)a;
	b->len /= 2;
}

static void spoil_flip(struct byte_buffer *b, struct attack *a)
{
	for (int i = 0; i < 3 && b->len; i++)
		b->data[attack_random(a) % b->len] ^= (uint8_t)(1 << (attack_random(a) % 8));
}

static void spoil_repeat(struct byte_buffer *b, struct attack *a)
{
	size_t len = b->len;

	(void)a;
	while (b->len && b->len + len < VS_FRAME_RAW_MAX / 2) {
		byte_buffer_reserve(b, len);
		memcpy(b->data + b->len, b->data, len);
		b->len += len;
	}
}

/* Field 1000, again and again: memory for nothing. */
static void spoil_unknown(struct byte_buffer *b, struct attack *a)
{
	(void)a;
	for (int i = 0; i < 60000; i++)
		byte_buffer_append(b, "\xc0\x3e\x01", 3);
}

/* Every field number as a length-delimited field that claims 2^63 bytes. */
static void spoil_length(struct byte_buffer *b, struct attack *a)
{
	uint8_t field = (uint8_t)((1 + attack_random(a) % 15) << 3 | 2);

	byte_buffer_append(b, &field, 1);
	byte_buffer_append(b, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9);
}

/* Numbers of ten bytes of ones, for fields 1 to 15. */
static void spoil_numbers(struct byte_buffer *b, struct attack *a)
{
	(void)a;
	for (uint8_t field = 1; field < 16; field++) {
		uint8_t tag = (uint8_t)(field << 3);

		byte_buffer_append(b, &tag, 1);
		byte_buffer_append(b, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
	}
}

/* A varint that does not end. */
static void spoil_endless(struct byte_buffer *b, struct attack *a)
{
	(void)a;
	for (int i = 0; i < 1000; i++)
		byte_buffer_append(b, "\xff", 1);
}

static const struct {
	const char *name;
	void (*spoil)(struct byte_buffer *b, struct attack *a);
	int times;
} spoilers[] = {
	{"empty", spoil_nothing, 1},
	{"random bytes", spoil_random, 20},
	{"its first half", spoil_half, 1},
	{"flipped bits", spoil_flip, 200},
	{"itself again and again", spoil_repeat, 1},
	{"60000 unknown fields", spoil_unknown, 1},
	{"a length of 2^63", spoil_length, 15},
	{"numbers of ten bytes", spoil_numbers, 1},
	{"a number without end", spoil_endless, 1},
};

enum {
	N_MESSAGES = sizeof(messages) / sizeof(messages[0]),
	N_SPOILERS = sizeof(spoilers) / sizeof(spoilers[0]),
};

static void play_spoilt(struct attack *a, unsigned int variant)
{
	unsigned int m = variant / N_SPOILERS, s = variant % N_SPOILERS;

	attack_hello(a);
	for (int i = 0; i < spoilers[s].times; i++) {
		a->payload.len = 0;
		byte_buffer_reserve(&a->payload, 1);
		messages[m].pack(a);
		spoilers[s].spoil(&a->payload, a);
		attack_frame(a, messages[m].kind);
	}
	attack_sign_of_life(a);
}

bool message_case(size_t i, struct attack_case *out)
{
	static char names[N_MESSAGES * N_SPOILERS][64];

	if (i >= (size_t)N_MESSAGES * N_SPOILERS)
		return false;
	snprintf(names[i], sizeof(names[i]), "%s: %s", messages[i / N_SPOILERS].name,
		 spoilers[i % N_SPOILERS].name);
	*out = (struct attack_case){"message", names[i], play_spoilt, (unsigned int)i, EXPECT_ANY};
	return true;
}
