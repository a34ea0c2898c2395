/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The batch codec. A batch holds the events of one CPU, encoded as columns of differences (Batch
 * in wire.proto). The agent and the collector use the same codec, both live and for recordings.
 *
 * Encoding allocates no memory per event. Decoding writes into storage that the decoder owns and
 * reuses.
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
	uint64_t time_err;  /* bound on the error of each stamp, ticks of the stream clock */
	uint64_t watermark; /* stream time; no older event of this CPU follows */
	uint64_t emitted, dropped_kernel, dropped_user; /* totals of this CPU, events */
	/* If not 0: stream times of two clock samples between which the VMM paused the sender. The
	 * stamps between them were interpolated as if the clock had not stopped (wire.proto). */
	uint64_t chord_begin, chord_end;
	/* 1 + the CPU whose TSC the stamps are; 0: unknown, or each stamp is of the CPU of its
	 * event. The value matters only if the TSCs of the vCPUs differ. */
	uint32_t tsc_cpu;
	size_t n_events;
	struct vs_event *events; /* borrowed from the caller (encode) or decoder (decode) */
};

struct batch_encoder;
struct batch_decoder;

/* Returns NULL if out of memory. VS_BATCH_EVENTS_MAX bounds the memory of the encoder. */
struct batch_encoder *batch_encoder_new(void);
void batch_encoder_free(struct batch_encoder *e);
/* Makes the encoder accept event types that event.h does not define. A program that forwards the
 * events of a newer peer needs this. */
void batch_encoder_relay(struct batch_encoder *e);
/* Checks a batch that another process wrote: returns 0 if decoding an encoded batch could have
 * returned it (see batch_decode()), else -EINVAL or -E2BIG. */
int batch_validate(const struct batch *b);
/* Appends the Batch message to `out`. All events must be of b->cpu and in order of time; equal
 * times are allowed. Returns 0, -E2BIG (more than VS_BATCH_EVENTS_MAX events), -EINVAL (an event
 * of another CPU, an event older than its predecessor, or a type that event.h does not define) or
 * -ENOMEM. On error nothing is appended. */
int batch_encode(struct batch_encoder *e, const struct batch *b, struct byte_buffer *out);
/* Returns how many bytes of the last message end with the low bits of the times. They are noise, so
 * the rest is smaller if it is compressed apart: see frame_write_parted(). */
size_t batch_encoder_noise_end(const struct batch_encoder *e);

/* Returns NULL if out of memory. batch_decoder_free() accepts NULL. */
struct batch_decoder *batch_decoder_new(void);
void batch_decoder_free(struct batch_decoder *d);
/*
 * Decodes and validates a Batch payload. out->events is valid until the next call. The decoded
 * events are in order of time, of one CPU below VS_CPUS_MAX, and have types of 1 and above.
 *
 * The decoder keeps events of types that event.h does not define (a newer peer sends them): up to
 * 192 such types per batch with all fields, further types with time, seq and type only. A type
 * above 65535 becomes 65535.
 *
 * Returns 0, -EBADMSG (malformed) or -E2BIG (too many events or columns, or a CPU number out of
 * range).
 */
int batch_decode(struct batch_decoder *d, const uint8_t *payload, size_t len, struct batch *out);

#endif
