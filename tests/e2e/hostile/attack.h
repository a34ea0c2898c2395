/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A hostile guest as one program. Each case is a row (cases_*.c) that plays one attack over one
 * connection, and contains the effect that the attack must have. All cases are deterministic.
 */
#ifndef HOSTILE_ATTACK_H
#define HOSTILE_ATTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/message.h"

struct attack {
	const char *path; /* the collector listens there */
	int fd;
	struct frame_writer *writer;
	struct batch_encoder *encoder;
	struct byte_buffer payload, wire;
	uint64_t session, random;
	uint32_t seq;
	uint64_t until_ms; /* CLOCK_MONOTONIC; later attack_send() returns false */
};

/* The effects that a case may have, as bits: each is a count of the collector for this channel. One
 * of the expected counts must grow. */
enum {
	EXPECT_NOTHING = 0, /* no count grows */
	EXPECT_ACCEPTED = 1,
	EXPECT_DAMAGED = 2, /* damaged frames, or skipped bytes */
	EXPECT_REFUSED = 4,
	EXPECT_REPLAYED = 8,
	EXPECT_LOST = 16,
	EXPECT_ANY = 31,
	EXPECT_NOT_REFUSED = 32, /* with EXPECT_ACCEPTED: no frame may be refused */
};

struct attack_case {
	const char *family, *name;
	void (*play)(struct attack *a, unsigned int variant);
	unsigned int variant, expect;
};

/* Store row `i` of one file's cases. Return false past the last. */
bool header_case(size_t i, struct attack_case *out);
bool message_case(size_t i, struct attack_case *out);
bool batch_case(size_t i, struct attack_case *out);
bool text_case(size_t i, struct attack_case *out);
bool flow_case(size_t i, struct attack_case *out);
bool value_case(size_t i, struct attack_case *out);

/* Connects to a->path and begins a new session. Ends the process with a message if nobody listens.
 */
void attack_connect(struct attack *a);
void attack_close(struct attack *a);
/* Returns a pseudo-random number, the same in each run. */
uint64_t attack_random(struct attack *a);
uint64_t attack_now_ms(void);
void attack_sleep_ms(unsigned int ms);

/* Sends bytes. Meanwhile reads and discards the bytes that arrive. Returns false if the time of the
 * case is over or the collector closed the connection. */
bool attack_send(struct attack *a, const void *bytes, size_t len);
/* Sends a->payload as a valid frame of the session, and empties it. Returns as attack_send(). */
bool attack_frame(struct attack *a, enum frame_kind kind);
/* Sends a frame with this header and this payload. Sets the CRC of the header to its valid value;
 * sends payload_crc as it is. Returns as attack_send(). */
bool attack_raw_frame(struct attack *a, const struct frame_header *header, const void *payload,
		      size_t len);
/* Returns the header of a valid frame with this payload and the next frame number. */
struct frame_header attack_header(struct attack *a, uint8_t kind, const void *payload, size_t len);

/* Fill in or send a valid HELLO. */
void hello_make(struct message_hello *out);
bool attack_hello(struct attack *a);
/* attack_batch() sends events as a valid batch. events_make() fills in `n` events of a CPU, with
 * times from `time` on and numbers from `seq` on. */
bool attack_batch(struct attack *a, struct vs_event *events, size_t n, uint16_t cpu);
void events_make(struct vs_event *events, size_t n, uint16_t cpu, uint64_t time, uint32_t seq);
/* Sends a valid frame after the attack, which the collector must still accept. */
bool attack_sign_of_life(struct attack *a);

#endif
