/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a decoder process tells the collector: one fixed struct without pointers. A decoder that was
 * taken over may write anything into it, so the collector works on a copy of its own that went
 * through record_check(): counts are within their arrays, texts end, booleans are 0 or 1. What the
 * values mean is then nobody's memory safety: framer.h packs them into a frame afresh.
 */
#ifndef DECODE_RECORD_H
#define DECODE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "host-collector/decode/guest_session.h"
#include "proto/codec.h"
#include "proto/message.h"
#include "proto/unknown.h"

enum record_kind {
	/* A frame of the guest's, taken apart. */
	RECORD_HELLO = 1,
	RECORD_BATCH,
	RECORD_HEARTBEAT,
	RECORD_ECHO_REPLY,
	RECORD_CLOCK_SAMPLE,
	RECORD_KERNEL_LOG,
	RECORD_STACK,
	/* The decoder's own. */
	RECORD_OBSERVATION,
	RECORD_NOTE,
	RECORD_STATS,
	RECORD_DOWN,         /* the connection ended; the last record */
	RECORD_CONFIG_REPLY, /* a frame of the guest's */
	/* Fields of the guest's next frame that this version does not know, as they came. */
	RECORD_UNKNOWN,
	/* A guest's frame of a kind that this version does not know; only its place is kept. */
	RECORD_UNKNOWN_FRAME,
};

struct record_head {
	uint16_t kind;
	uint16_t fresh; /* HELLO: the agent introduced itself, for the first time or anew */
	uint32_t frame_seq;
	uint64_t session_id, arrival_tsc; /* with frame_seq: of the frame */
};

struct record_batch {
	uint64_t time_err, watermark, emitted, dropped_kernel, dropped_user;
	uint64_t chord_begin, chord_end;
	uint32_t cpu, n_events;
	struct vs_event events[VS_BATCH_EVENTS_MAX];
};

struct record_stats {
	struct guest_session_stats session;
	uint64_t nonsense;        /* frames whose content makes no sense; dropped */
	uint64_t unknown_dropped; /* frames with more unknown fields than VS_UNKNOWN_MAX bytes */
	uint64_t cpu_ns;          /* the decoder's own */
	uint64_t held_ms;         /* it did not read, because the guest had used up its budget */
	uint64_t blocked_ms; /* it did not read, because the collector did not take its records */
};

struct record_unknown {
	uint32_t n;
	uint8_t bytes[VS_UNKNOWN_MAX];
};

struct record_unknown_frame {
	uint32_t kind;
};

struct record_down {
	int32_t error; /* errno; 0: closed by the other end */
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
		struct record_unknown unknown;
		struct record_unknown_frame unknown_frame;
	};
};

/* How many bytes of `record` matter: the rest of its last array is left out. */
size_t record_bytes(const struct guest_record *record);
/* Makes `record`, of which `bytes` bytes were received, safe to use. 0 or -EPROTO: no decoder of
 * ours writes this. */
int record_check(struct guest_record *record, size_t bytes);

#endif
