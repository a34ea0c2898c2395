/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records that a decoder process sends to the collector: one fixed struct without pointers.
 *
 * A compromised decoder may write anything into a record. Therefore the collector works on a copy
 * that passed record_check(): counts are within their arrays, texts end with NUL, booleans are 0 or
 * 1. The values themselves are not trusted, but cannot break memory safety: framer.h encodes them
 * into a new frame. The catalogue of messages (proto/message_fields.h) says what to clean.
 */
#ifndef DECODE_RECORD_H
#define DECODE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "host-collector/decode/guest_session.h"
#include "proto/codec.h"
#include "proto/frame_kinds.h"
#include "proto/message.h"
#include "proto/unknown.h"

/* The kind of a record: a frame kind that an agent sends (proto/frame_kinds.h), with the decoded
 * content of the guest's frame, or one of these, which the decoder makes itself. */
enum record_kind {
	RECORD_OBSERVATION = FRAME_ECHO_OBSERVATION,
	RECORD_NOTE = FRAME_NOTE,
	RECORD_STATS = 256, /* above all frame kinds */
	RECORD_DOWN,        /* the connection ended; the last record */
	/* The unchanged fields of the guest's next frame that this version does not know. */
	RECORD_UNKNOWN,
	/* A guest's frame of a kind that this version does not know; the content is dropped. */
	RECORD_UNKNOWN_FRAME,
};

struct record_head {
	uint16_t kind;
	uint16_t fresh; /* HELLO: 1 if the agent introduced itself, first or after a restart */
	uint32_t frame_seq;
	uint64_t session_id, arrival_tsc; /* of the frame, as is frame_seq */
};

struct record_batch {
	uint64_t time_err, watermark, emitted, dropped_kernel, dropped_user;
	uint64_t chord_begin, chord_end;
	uint32_t cpu, tsc_cpu;
	size_t n_events;
	struct vs_event events[VS_BATCH_EVENTS_MAX];
};

struct record_stats {
	struct guest_session_stats session;
	uint64_t malformed;       /* malformed frames, which are dropped */
	uint64_t unknown_dropped; /* frames with more than VS_UNKNOWN_MAX bytes of unknown fields */
	uint64_t cpu_ns;          /* CPU time of the decoder */
	uint64_t held_ms;         /* time without reading because the guest's budget was used up */
	uint64_t blocked_ms;      /* time without reading because the ring was full */
};

struct record_unknown {
	size_t n;
	uint8_t bytes[VS_UNKNOWN_MAX];
};

struct record_unknown_frame {
	uint32_t kind;
};

struct record_down {
	int32_t error; /* errno; 0: the other end closed the connection */
};

struct guest_record {
	struct record_head head;
	union {
		struct message_hello hello;
		struct record_batch batch;
		struct message_heartbeat heartbeat;
		struct message_echo_reply echo_reply;
		struct message_clock_sample clock_sample;
		struct message_kernel_log kernel_log;
		struct message_stack stack;
		struct message_echo_observation observation;
		struct message_note note;
		struct record_stats stats;
		struct record_down down;
		struct message_config_reply config_reply;
		struct message_user_events user_events;
		struct record_unknown unknown;
		struct record_unknown_frame unknown_frame;
	};
};

/* Returns the struct of a record whose kind is a frame kind with such a struct (message.h). */
static inline void *record_message(struct guest_record *record)
{
	return &record->hello;
}

/* Returns the number of bytes of `record` in use: the unused rest of its last array is not sent. */
size_t record_bytes(const struct guest_record *record);
/* Makes `record`, of which `bytes` bytes were received, safe to use. Returns 0, or -EPROTO if it
 * breaks the format. */
int record_check(struct guest_record *record, size_t bytes);

#endif
