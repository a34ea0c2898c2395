/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Batches: the events of one CPU as columns of deltas (wire.proto, Batch). One codec for guest and
 * host, live and recorded. Encoding allocates nothing per event; decoding writes into storage that
 * the decoder keeps between calls.
 */
#ifndef PROTO_CODEC_H
#define PROTO_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "proto/buffer.h"
#include "proto/event.h"

enum { VS_BATCH_EVENTS_MAX = 8192 };

struct batch {
	uint16_t cpu;
	uint64_t time_err;  /* bound on every stamp, ticks of the stream clock */
	uint64_t watermark; /* no event older than this follows on this CPU */
	uint64_t emitted, dropped_kernel, dropped_user; /* running totals of this CPU */
	/* Not 0: the sender's clock stood still between these stream times, and its stamps between
	 * them lie on a straight line all the same (wire.proto). */
	uint64_t chord_begin, chord_end;
	size_t n_events;
	struct vs_event *events; /* borrowed: caller's on encode, the decoder's on decode */
};

struct batch_encoder;
struct batch_decoder;

/* NULL on ENOMEM. The scratch storage is bounded by VS_BATCH_EVENTS_MAX. */
struct batch_encoder *batch_encoder_new(void);
void batch_encoder_free(struct batch_encoder *e);
/* From here on types that event.h does not have are encoded too: for one who passes on what a newer
 * peer sent. */
void batch_encoder_relay(struct batch_encoder *e);
/* Appends the Batch message to `out`. Events must all be of b->cpu and in time order (equal times
 * allowed). 0, -E2BIG (more than VS_BATCH_EVENTS_MAX), -EINVAL (another cpu, a time before its
 * predecessor's, a type that event.h does not have; nothing is appended), -ENOMEM. */
int batch_encode(struct batch_encoder *e, const struct batch *b, struct byte_buffer *out);

/* NULL on ENOMEM. Owns what it decodes into. Freeing NULL is allowed. */
struct batch_decoder *batch_decoder_new(void);
void batch_decoder_free(struct batch_decoder *d);
/* Decodes and validates a Batch payload; out->events is valid until the next call. What comes out
 * is in time order, of one CPU below VS_CPUS_MAX, with types of 1 and above. Types that event.h
 * does not have are kept (a newer peer's): up to 192 of them in one batch with their fields, any
 * others with time, seq and type alone (65535 for a type above that). 0, -EBADMSG, -E2BIG, -ENOMEM.
 */
int batch_decode(struct batch_decoder *d, const uint8_t *payload, size_t len, struct batch *out);

#endif
