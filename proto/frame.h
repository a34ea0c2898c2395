/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames: what a channel carries and a recording stores. Little-endian header, then the payload
 * (one message of wire.proto, zstd-compressed if VS_FRAME_ZSTD).
 *
 *   0  4  magic "VCSF"
 *   4  1  version (1)
 *   5  1  kind (enum frame_kind)
 *   6  2  flags
 *   8  4  payload_bytes, as stored
 *  12  4  raw_bytes, after decompression (= payload_bytes if not compressed)
 *  16  8  session_id, random per connection attempt
 *  24  4  frame_seq, from 0 in each session: a gap is a lost frame, a step back is a replay
 *  28  4  CRC32C of the stored payload
 *  32  4  CRC32C of header bytes 0..31, so that a damaged length is known at once
 */
#ifndef PROTO_FRAME_H
#define PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buffer.h"

enum {
	VS_FRAME_VERSION = 1,
	VS_FRAME_HEADER_BYTES = 36,
	VS_FRAME_PAYLOAD_MAX = 512 * 1024, /* the largest legal batch fits, compressible or not */
	VS_FRAME_RAW_MAX = 1024 * 1024,
};

enum frame_flags { VS_FRAME_ZSTD = 1 };

enum frame_kind {
	FRAME_HELLO = 1,
	FRAME_BATCH = 2,
	FRAME_HEARTBEAT = 3,
	FRAME_ECHO_REQUEST = 4,
	FRAME_ECHO_REPLY = 5,
	FRAME_CLOCK_SAMPLE = 6,
	FRAME_KERNEL_LOG = 7,
	FRAME_GUEST_STACK = 8, /* a Stack that a guest's TASK_STACK events name */
	FRAME_CONFIG = 9,      /* the host's */
	FRAME_CONFIG_REPLY = 10,
	FRAME_VM_INFO = 16,
	FRAME_ECHO_OBSERVATION = 17,
	FRAME_STACK = 18,
	FRAME_NOTE = 19,
	FRAME_RECORDING_END = 20,
	FRAME_VM_CLOCK = 21,
	FRAME_CPU_QUOTA = 22,
	FRAME_EXIT_SUMMARY = 23,
	FRAME_TASK_ORIGINS = 24,
};

/* Who may send a kind, bits; 0: this version does not know it. */
enum frame_sender { FRAME_BY_AGENT = 1, FRAME_BY_COLLECTOR = 2 };
unsigned int frame_kind_senders(uint8_t kind);

struct frame_header {
	uint8_t version;
	uint8_t kind;
	uint16_t flags;
	uint32_t payload_bytes;
	uint32_t raw_bytes;
	uint64_t session_id;
	uint32_t frame_seq;
	uint32_t payload_crc;
};

/* A whole frame inside somebody else's memory: bytes is header + stored payload. */
struct frame_view {
	struct frame_header header;
	const uint8_t *bytes;
	size_t len;
};

/* Continues `crc`, which is 0 at the start. */
uint32_t frame_crc32c(uint32_t crc, const void *data, size_t len);

struct frame_writer; /* a zstd context and the session's counter */
/* NULL on ENOMEM. */
struct frame_writer *frame_writer_new(uint64_t session_id);
void frame_writer_free(struct frame_writer *w);
/* Appends one frame; compresses (zstd -1) when that makes it smaller. 0, -E2BIG, -ENOMEM; on error
 * nothing is appended and no frame_seq is used up. */
int frame_write(struct frame_writer *w, enum frame_kind kind, const uint8_t *payload, size_t len,
		struct byte_buffer *out);
/* Gives a whole frame, made earlier by frame_write, the place in a session that it leaves with. */
void frame_restamp(uint8_t *frame, uint64_t session_id, uint32_t frame_seq);

/* Takes the header apart; checks magic, version, sizes and the header's CRC, not the payload's. 0,
 * -EAGAIN (fewer than VS_FRAME_HEADER_BYTES), -EBADMSG (no magic), -EPROTONOSUPPORT (another
 * version), -EILSEQ (the header's CRC is wrong), -E2BIG (sizes that no writer of ours makes). */
int frame_header_parse(const uint8_t *bytes, size_t len, struct frame_header *header);
/* A whole frame at the start of `bytes`, both CRCs checked. 0, what frame_header_parse says,
 * -EAGAIN (the payload is not all there), -EILSEQ (the payload's CRC is wrong). */
int frame_parse(const uint8_t *bytes, size_t len, struct frame_view *frame);

struct frame_reader_stats {
	uint64_t frames;        /* good ones */
	uint64_t skipped_bytes; /* passed over to find the next good frame */
	uint64_t bad_crc;       /* frames whose header or payload was damaged */
	uint64_t bad_length;    /* headers with sizes that no writer of ours makes */
	uint64_t bad_version;   /* frames of another version */
	uint64_t abandoned;     /* frames that never became whole */
	uint64_t resyncs;       /* good frames that came after something else */
};

/*
 * Finds frames in a byte stream of any quality. After anything that is no good frame, the search
 * goes on one byte later, so that damage costs the damaged frames only.
 */
struct frame_reader {
	struct byte_buffer pending;
	size_t consumed;      /* of pending: handed out or passed over */
	size_t rescan_credit; /* bytes that may yet be looked at twice, see frame_reader.c */
	bool out_of_sync;
	struct frame_reader_stats stats;
};
/* Frees what waits; the reader itself is the caller's. */
void frame_reader_init(struct frame_reader *r);
void frame_reader_fini(struct frame_reader *r);
/* Adds bytes from the channel. Memory is bounded by twice one largest frame plus `len`, if the
 * frames were taken out before. 0, -ENOMEM. */
int frame_reader_push(struct frame_reader *r, const uint8_t *data, size_t len);
/* The next good frame, valid until the next call on this reader: 1, or 0 if more bytes are
 * needed. */
int frame_reader_next(struct frame_reader *r, struct frame_view *frame);
/* True while the beginning of a frame waits for its rest. */
bool frame_reader_is_partial(const struct frame_reader *r);
/*
 * Gives up the frame whose beginning waits, and searches behind it. For a caller with a clock: a
 * peer that died in the middle of a frame would else hide what its successor sends until as many
 * bytes have arrived as the dead frame announced. Call it when one frame stayed partial for a few
 * seconds, then frame_reader_next again.
 */
void frame_reader_abandon(struct frame_reader *r);

/* Decompresses frame payloads; owns the output. */
struct frame_unpacker;
/* NULL on ENOMEM. Freeing NULL is allowed. */
struct frame_unpacker *frame_unpacker_new(void);
void frame_unpacker_free(struct frame_unpacker *u);
/* The raw payload of a CRC-checked frame, valid until the next call. 0, -EBADMSG (zstd error or
 * raw_bytes lies), -E2BIG, -ENOMEM. */
int frame_unpack(struct frame_unpacker *u, const struct frame_view *frame, const uint8_t **payload,
		 size_t *len);

enum { VS_RETIRED_SESSIONS = 8 };

/* Judges a session's frame_seq: 0 in order, > 0 frames lost before this one, < 0 -EALREADY: a
 * replayed frame, drop it. A new session_id starts a new order; the last few that it replaced stay
 * known, so that what a channel's backlog still held of them is a replay too. */
struct frame_order {
	bool started;
	uint64_t session_id;
	uint32_t next;
	uint32_t n_retired; /* in all; the newest VS_RETIRED_SESSIONS are kept */
	uint64_t retired[VS_RETIRED_SESSIONS];
};
int64_t frame_order_check(struct frame_order *o, const struct frame_header *h);

#endif
