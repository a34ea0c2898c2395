/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns captured events into Batch frames: converts their stamps to the stream's clock (TSC ticks),
 * turns gaps in their sequence numbers into LOST events, and keeps totals per CPU. The events of
 * guest and host both pass here.
 *
 * Invariant, per CPU and at every frame: emitted = delivered + dropped_kernel + dropped_user, where
 * delivered counts the events (without LOST markers) in frames that were not reported to
 * batcher_drop(). A reader can check this: the sequence numbers of a CPU continue from one batch to
 * the next, so each event that the reader did not receive leaves a gap.
 *
 * A CPU without events produces no frame; batcher_promise() covers it. Cost: about 25 ns and no
 * allocation per event. Memory: 700 KiB, and 100 bytes per CPU.
 */
#ifndef CAPTURE_BATCHER_H
#define CAPTURE_BATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/capture/capture.h"
#include "clock/sample.h"
#include "proto/buffer.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/message.h"

struct batcher;

/* The functions of a capture and of the clocks that the batcher uses. Tests replace them. */
struct batcher_source {
	/* As capture_drain(). The source may deliver LOST events: `count` is the number of sequence
	 * numbers that each replaces, and the source's totals count these as dropped. */
	long (*drain)(void *context, const struct capture_sink *sink);
	int (*cpu_stats)(void *context, size_t cpu, struct capture_cpu_stats *out);
	/* Takes a clock sample that is not older than any event delivered so far; it may return the
	 * last sample again. Returns 0 or -errno. */
	int (*sample)(void *context, struct clock_sample *out);
	/* As capture_clock_samples(). NULL: there are none. */
	size_t (*samples)(void *context, uint64_t after_tsc, struct clock_sample *out, size_t max);
	size_t n_cpus;
	uint64_t lag_ns; /* see capture_lag_ns() */
	void *context;
};

/* Receives what a drain delivers in addition to the frames, or instead of them. */
struct batcher_stack_sink {
	/* Receives a captured stack, borrowed for the call. Its time is in TSC ticks, with an error
	 * of at most err_ticks. */
	void (*stack)(void *context, const struct capture_stack *stack, uint64_t err_ticks);
	void *context;
	/* Receives each TASK_NAME and SCHED_SWITCH before it is encoded. Its time is in TSC ticks;
	 * monotonic_ns is the captured stamp. May be NULL. */
	void (*task)(void *context, const struct vs_event *e, uint64_t monotonic_ns);
	/* Receives each batch, borrowed for the call, instead of a frame of it in `out`. Returns 0,
	 * or -errno if its events are lost. NULL: `out` gets frames. */
	int (*batch)(void *context, const struct batch *batch);
};

/* A frame of the last drain: its place in `out`, and the number of events that are lost if the
 * caller drops it. */
struct batcher_frame {
	size_t offset, len;
	uint16_t cpu;
	uint32_t events; /* number of events, without LOST markers */
};

struct batcher_totals {
	uint64_t emitted, delivered, dropped_kernel, dropped_user;
};

/* Creates a batcher that turns the events of `c` into frames of `w`. Borrows both. Takes the first
 * clock sample. Returns NULL if out of memory or if the clocks cannot be read. */
struct batcher *batcher_new(struct capture *c, struct frame_writer *w);
struct batcher *batcher_new_from(const struct batcher_source *source, struct frame_writer *w);
void batcher_free(struct batcher *b);

/*
 * Drains the source once and appends complete Batch frames to `out`, CPU by CPU, each with at most
 * VS_BATCH_EVENTS_MAX events. stacks: may be NULL. Returns the number of events in them, or
 * -errno. After an error `out` holds complete frames of the events that the source delivered before
 * the error; events that could not be encoded are counted in dropped_user.
 */
long batcher_drain(struct batcher *b, struct byte_buffer *out,
		   const struct batcher_stack_sink *stacks);
/* Takes a clock sample as batcher_drain() does. Call it instead of batcher_drain() if the source
 * has no events. Does not advance the watermark. Returns 0 or -errno. */
int batcher_tick(struct batcher *b);
/* Returns the number of emitted events that are not drained yet, for the CPU with the most of them.
 * Callers use it to decide whether to drain. Cheap. */
uint64_t batcher_pending(const struct batcher *b);
/* Returns the frames that the last drain appended, in order. They are valid until the next
 * drain. */
const struct batcher_frame *batcher_frames(const struct batcher *b, size_t *n);
/* Counts `events` of frames of this CPU as dropped_user: the caller dropped the frames. */
void batcher_drop(struct batcher *b, uint16_t cpu, uint64_t events);

/* Returns the watermark of all CPUs, in TSC ticks: no older event of any CPU will follow. It is the
 * time of the clock sample before the last drain, less its error and the source's lag. While a
 * record of a CPU is incomplete, that CPU's previous watermark holds. */
uint64_t batcher_promise(const struct batcher *b);
/* Returns the clock sample that was taken before the last drain. */
const struct clock_sample *batcher_sample(const struct batcher *b);
/* Sets whether batches name the CPU whose TSC their stamps are (struct batch). Pass true only on a
 * machine whose CLOCK_MONOTONIC does not depend on the CPU that reads it. Initially false. */
void batcher_name_tsc_cpu(struct batcher *b, bool names);
/* Sets the threshold of handler_summary.h from the next drain on: shorter handlers do not become
 * events but are counted. 0: all handlers become events. Counted handlers are in no total and have
 * no sequence number. */
void batcher_summarise(struct batcher *b, uint64_t handler_over_ns);
/* Returns the counts so far, by enum event_class; max_ns is since the threshold last changed. The
 * array is valid as long as the batcher. */
const struct message_aggregated *batcher_aggregated(const struct batcher *b);
/* Calls `rewrite` for the events of each drain, before they are encoded: it may change their
 * arguments, and nothing else. All events of a call are of one CPU, in the order in which the
 * source delivered them. NULL: stops the calls. */
void batcher_rewrite(struct batcher *b,
		     void (*rewrite)(void *context, struct vs_event *events, size_t n),
		     void *context);
/* Returns the sums over all CPUs as of the last drain. */
void batcher_totals_get(const struct batcher *b, struct batcher_totals *out);

#endif
