/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest that means harm, as one program: each case is a row (cases_*.c) that plays one attack
 * over one connection. Everything is deterministic; what a case must lead to is part of its row.
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
	uint64_t until_ms; /* then the case gives up sending */
};

/* What must have grown afterwards in the collector's counts of this channel: one of these. */
enum {
	EXPECT_NOTHING = 0, /* no frame, no damage */
	EXPECT_ACCEPTED = 1,
	EXPECT_DAMAGED = 2, /* or bytes skipped */
	EXPECT_REFUSED = 4,
	EXPECT_REPLAYED = 8,
	EXPECT_LOST = 16,
	EXPECT_ANY = 31,
	EXPECT_NOT_REFUSED = 32, /* beside EXPECT_ACCEPTED */
};

struct attack_case {
	const char *family, *name;
	void (*play)(struct attack *a, unsigned int variant);
	unsigned int variant, expect;
};

/* Rows of one file: cases(0), cases(1), .. until false. */
bool header_case(size_t i, struct attack_case *out);
bool message_case(size_t i, struct attack_case *out);
bool batch_case(size_t i, struct attack_case *out);
bool text_case(size_t i, struct attack_case *out);
bool flow_case(size_t i, struct attack_case *out);
bool value_case(size_t i, struct attack_case *out);

/* Dials and opens a session of its own number; dies with a message if nobody listens. */
void attack_connect(struct attack *a);
void attack_close(struct attack *a);
/* A deterministic random number. */
uint64_t attack_random(struct attack *a);
uint64_t attack_now_ms(void);
void attack_sleep_ms(unsigned int ms);

/* Sends bytes; false if the time of the case is over or the other end closed. Reads and forgets
 * what comes meanwhile. */
bool attack_send(struct attack *a, const void *bytes, size_t len);
/* Sends what lies in a->payload as a good frame of the session, and empties it. */
bool attack_frame(struct attack *a, enum frame_kind kind);
/* The same with a header of one's own, CRCs made good. */
bool attack_raw_frame(struct attack *a, const struct frame_header *header, const void *payload,
		      size_t len);
/* The header of a good frame around this payload; takes the next number. */
struct frame_header attack_header(struct attack *a, uint8_t kind, const void *payload, size_t len);

/* Good messages. */
void hello_make(struct message_hello *out);
bool attack_hello(struct attack *a);
/* n events of `type` on CPU 0 from `time` on, seq from `seq`. */
bool attack_batch(struct attack *a, struct vs_event *events, size_t n, uint16_t cpu);
void events_make(struct vs_event *events, size_t n, uint16_t cpu, uint64_t time, uint32_t seq);
/* A last good frame, which must still be understood. */
bool attack_sign_of_life(struct attack *a);

#endif
