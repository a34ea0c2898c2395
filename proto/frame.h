/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames are the unit that a channel carries and a recording stores. A frame is a little-endian
 * header and a payload: one message of wire.proto, compressed with zstd if VS_FRAME_ZSTD is set.
 * Its parts may be compressed one by one (zstd frames in a row).
 *
 *   0  4  magic "VCSF"
 *   4  1  version (1)
 *   5  1  kind (enum frame_kind)
 *   6  2  flags
 *   8  4  payload_bytes, as stored
 *  12  4  raw_bytes, after decompression (= payload_bytes if not compressed)
 *  16  8  session_id, random for each connection attempt
 *  24  4  frame_seq, from 0 in each session: a gap is a lost frame, a step back is a replay
 *  28  4  CRC32C of the stored payload
 *  32  4  CRC32C of header bytes 0..31; a reader detects a damaged length at once
 */
#ifndef PROTO_FRAME_H
#define PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buffer.h"
#include "proto/frame_kinds.h"

enum {
	VS_FRAME_VERSION = 1,
	VS_FRAME_HEADER_BYTES = 36,
	VS_FRAME_PAYLOAD_MAX = 512 * 1024, /* enough for the largest batch without compression */
	VS_FRAME_RAW_MAX = 1024 * 1024,
};

enum frame_flags { VS_FRAME_ZSTD = 1 };

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

/* A complete frame in memory of another owner. bytes: header and stored payload. */
struct frame_view {
	struct frame_header header;
	const uint8_t *bytes;
	size_t len;
};

/* Continues the CRC32C `crc` with `data` and returns the result. Start with 0. */
uint32_t frame_crc32c(uint32_t crc, const void *data, size_t len);

struct frame_writer; /* owns a zstd context and the sequence number of the session */
/* Returns NULL if out of memory. */
struct frame_writer *frame_writer_new(uint64_t session_id);
void frame_writer_free(struct frame_writer *w);
/* Appends one frame to `out`. Compresses the payload (zstd level 1) if that makes it smaller.
 * Returns 0, -E2BIG (the payload exceeds a limit) or -ENOMEM. On error it appends nothing and uses
 * no frame_seq. */
int frame_write(struct frame_writer *w, enum frame_kind kind, const uint8_t *payload, size_t len,
		struct byte_buffer *out);
/* Does the same, but compresses the first `part` bytes apart from the rest, unless one of the two
 * is small. That is better if they consist of other bytes. A reader sees no difference. */
int frame_write_parted(struct frame_writer *w, enum frame_kind kind, const uint8_t *payload,
		       size_t len, size_t part, struct byte_buffer *out);
/* Takes the next sequence number for a frame that another writer makes. */
uint32_t frame_writer_number(struct frame_writer *w);
uint64_t frame_writer_session(const struct frame_writer *w);
/* Sets the session id and the sequence number of a complete frame and updates the header's CRC. */
void frame_restamp(uint8_t *frame, uint64_t session_id, uint32_t frame_seq);

/* Parses a header. Checks magic, version, sizes and the CRC of the header, but not the payload.
 * Returns 0, -EAGAIN (fewer than VS_FRAME_HEADER_BYTES), -EBADMSG (no magic), -EPROTONOSUPPORT
 * (another version), -EILSEQ (wrong header CRC) or -E2BIG (sizes that frame_write() never
 * produces). */
int frame_header_parse(const uint8_t *bytes, size_t len, struct frame_header *header);
/* Parses a complete frame at the start of `bytes` and checks both CRCs. Returns 0, an error of
 * frame_header_parse(), -EAGAIN (the payload is not complete) or -EILSEQ (wrong payload CRC). */
int frame_parse(const uint8_t *bytes, size_t len, struct frame_view *frame);

struct frame_reader_stats {
	uint64_t frames;        /* valid frames */
	uint64_t skipped_bytes; /* skipped in the search for a valid frame */
	uint64_t bad_crc;       /* frames with a damaged header or payload */
	uint64_t bad_length;    /* headers with sizes that frame_write() never produces */
	uint64_t bad_version;   /* frames of another version */
	uint64_t abandoned;     /* incomplete frames that frame_reader_abandon() gave up */
	uint64_t resyncs;       /* valid frames after skipped bytes */
};

/*
 * Finds frames in a byte stream that may be damaged. After bytes that are not a valid frame, the
 * search continues one byte later, so damage costs only the damaged frames.
 */
struct frame_reader {
	struct byte_buffer pending;
	size_t consumed;      /* bytes of `pending` that were returned or skipped */
	size_t rescan_credit; /* bytes that the search may check again, see frame_reader.c */
	bool out_of_sync;
	struct frame_reader_stats stats;
};
void frame_reader_init(struct frame_reader *r);
/* Frees the pending bytes, not the reader itself. */
void frame_reader_fini(struct frame_reader *r);
/* Adds bytes from the channel. Returns 0 or -ENOMEM. If the caller takes all frames after each
 * call, the reader needs at most two frames of the largest size plus `len` bytes of memory. */
int frame_reader_push(struct frame_reader *r, const uint8_t *data, size_t len);
/* Finds the next valid frame; it is valid until the next call on this reader. Returns 1, or 0 if
 * the reader needs more bytes. */
int frame_reader_next(struct frame_reader *r, struct frame_view *frame);
/* Returns true if the pending bytes begin with an incomplete frame. */
bool frame_reader_is_partial(const struct frame_reader *r);
/*
 * Gives up an incomplete frame and continues the search behind its first byte. Call this if a
 * frame stays incomplete for some seconds, then call frame_reader_next() again. Otherwise, if a
 * peer ends in the middle of a frame, the reader takes the bytes of the next peer for the rest of
 * that frame.
 */
void frame_reader_abandon(struct frame_reader *r);

/* Decompresses frame payloads. Owns the output. */
struct frame_unpacker;
/* Returns NULL if out of memory. frame_unpacker_free() accepts NULL. */
struct frame_unpacker *frame_unpacker_new(void);
void frame_unpacker_free(struct frame_unpacker *u);
/* Returns the decompressed payload of a frame whose CRCs are valid. It is valid until the next
 * call and as long as the frame. Returns 0, -EBADMSG (zstd error, or raw_bytes is wrong), -E2BIG
 * or -ENOMEM. */
int frame_unpack(struct frame_unpacker *u, const struct frame_view *frame, const uint8_t **payload,
		 size_t *len);

enum { VS_RETIRED_SESSIONS = 8 };

/* The order of the frames of one channel. */
struct frame_order {
	bool started;
	uint64_t session_id;
	uint32_t next;
	uint32_t n_retired;                    /* sessions replaced so far */
	uint64_t retired[VS_RETIRED_SESSIONS]; /* ids of the newest of them */
};
/*
 * Checks the session and the sequence number of a frame. Returns 0 if the frame is in order, or the
 * number of frames lost before it if there is a gap. Returns -EALREADY for a replayed frame, which
 * the caller must drop. A new session_id starts a new sequence. A frame of one of the last
 * VS_RETIRED_SESSIONS replaced sessions is a replay.
 */
int64_t frame_order_check(struct frame_order *o, const struct frame_header *h);

#endif
