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
 *  28  4  CRC32C over header bytes 0..27 and the stored payload
 */
#ifndef PROTO_FRAME_H
#define PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buffer.h"

enum {
	VS_FRAME_VERSION = 1,
	VS_FRAME_HEADER_BYTES = 32,
	VS_FRAME_PAYLOAD_MAX = 256 * 1024,
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
	FRAME_VM_INFO = 16,
	FRAME_ECHO_OBSERVATION = 17,
	FRAME_STACK = 18,
	FRAME_NOTE = 19,
	FRAME_RECORDING_END = 20,
};

struct frame_header {
	uint8_t version;
	uint8_t kind;
	uint16_t flags;
	uint32_t payload_bytes;
	uint32_t raw_bytes;
	uint64_t session_id;
	uint32_t frame_seq;
	uint32_t crc;
};

/* A whole frame inside somebody else's memory: bytes is header + stored payload. */
struct frame_view {
	struct frame_header header;
	const uint8_t *bytes;
	size_t len;
};

uint32_t frame_crc32c(uint32_t crc, const void *data, size_t len);

struct frame_writer; /* a zstd context and the session's counter */
struct frame_writer *frame_writer_new(uint64_t session_id);
void frame_writer_free(struct frame_writer *w);
/* Appends one frame; compresses (zstd -1) when that makes it smaller. 0, -E2BIG, -ENOMEM. */
int frame_write(struct frame_writer *w, enum frame_kind kind, const uint8_t *payload, size_t len,
		struct byte_buffer *out);

/* Takes the header apart; checks magic, version, sizes, not the CRC. 0, -EAGAIN (fewer than
 * VS_FRAME_HEADER_BYTES), -EBADMSG (no magic), -EPROTONOSUPPORT (another version), -E2BIG. */
int frame_header_parse(const uint8_t *bytes, size_t len, struct frame_header *header);

struct frame_reader_stats {
	uint64_t frames;        /* good ones */
	uint64_t skipped_bytes; /* passed over to find the next good frame */
	uint64_t bad_crc, bad_length, bad_version, resyncs;
};

/* Finds frames in a byte stream of any quality; resynchronises on the next good header + CRC. */
struct frame_reader {
	struct byte_buffer pending;
	size_t consumed; /* of pending, by the last frame_reader_next */
	struct frame_reader_stats stats;
};
void frame_reader_init(struct frame_reader *r);
void frame_reader_fini(struct frame_reader *r);
/* Adds bytes from the channel. Memory is bounded by one largest frame plus `len`. 0, -ENOMEM. */
int frame_reader_push(struct frame_reader *r, const uint8_t *data, size_t len);
/* The next good frame, valid until the next call on this reader: 1, or 0 if more bytes are
 * needed. */
int frame_reader_next(struct frame_reader *r, struct frame_view *frame);

/* Decompresses frame payloads; owns the output. */
struct frame_unpacker;
struct frame_unpacker *frame_unpacker_new(void);
void frame_unpacker_free(struct frame_unpacker *u);
/* The raw payload of a CRC-checked frame, valid until the next call. 0, -EBADMSG (zstd error or
 * raw_bytes lies), -E2BIG, -ENOMEM. */
int frame_unpack(struct frame_unpacker *u, const struct frame_view *frame, const uint8_t **payload,
		 size_t *len);

/* Judges a session's frame_seq: 0 in order, > 0 frames lost before this one, < 0 -EALREADY: a
 * replayed frame, drop it. A new session_id starts a new order. */
struct frame_order {
	bool started;
	uint64_t session_id;
	uint32_t next;
};
int64_t frame_order_check(struct frame_order *o, const struct frame_header *h);

#endif
