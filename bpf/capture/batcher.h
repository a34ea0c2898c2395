/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From captured records to Batch frames: the one path by which events of either kernel get stamps
 * of the stream clock (TSC), sequence gaps become LOST events, and per-CPU totals are kept.
 *
 * Invariant, per CPU and at every frame: emitted = delivered + dropped_kernel + dropped_user, where
 * delivered counts the events (not the LOST markers) in frames that nobody reported as dropped.
 * A reader proves it without trusting us: consecutive batches of a CPU continue each other's
 * sequence numbers, so what it did not receive is a jump it can count.
 *
 * Idle CPUs produce no frame; batcher_promise() is what a heartbeat says for them.
 * Cost: about 25 ns and no allocation per event; 700 KiB plus 100 bytes per CPU.
 */
#ifndef CAPTURE_BATCHER_H
#define CAPTURE_BATCHER_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/capture/capture.h"
#include "clock/sample.h"
#include "proto/buffer.h"
#include "proto/frame.h"
#include "proto/message.h"

struct batcher;

/* What the batcher needs of a capture and of the clocks; tests stand in for the kernel here. */
struct batcher_source {
	/* As capture_drain(). A LOST event among them stands for as many numbers as it says, of
	 * which the source's totals know that they were dropped. */
	long (*drain)(void *context, const struct capture_sink *sink);
	int (*cpu_stats)(void *context, size_t cpu, struct capture_cpu_stats *out);
	/* What is not older was not handed over yet; the last one again if nothing is newer. */
	int (*sample)(void *context, struct clock_sample *out);
	size_t n_cpus;
	uint64_t
		lag_ns; /* how much later than younger records one may come, see capture_lag_ns() */
	void *context;
};

/* What a drain tells beside the frames. */
struct batcher_stack_sink {
	/* A capture's stack record; time is already TSC ticks, +-err_ticks. Borrowed. */
	void (*stack)(void *context, const struct capture_stack *stack, uint64_t err_ticks);
	void *context;
	/* A TASK_NAME or SCHED_SWITCH on its way into a frame: its time is in TSC ticks,
	 * monotonic_ns as it was captured. NULL: nobody asks. */
	void (*task)(void *context, const struct vs_event *e, uint64_t monotonic_ns);
};

/* One frame of the last drain: where it lies in `out`, and what is lost if it is dropped. */
struct batcher_frame {
	size_t offset, len;
	uint16_t cpu;
	uint32_t events; /* without LOST markers */
};

struct batcher_totals {
	uint64_t emitted, delivered, dropped_kernel, dropped_user;
};

/* Batches `c` (which must outlive the batcher) into frames of `w` (borrowed too). Takes the first
 * clock sample. NULL on ENOMEM or if the clocks cannot be read. */
struct batcher *batcher_new(struct capture *c, struct frame_writer *w);
struct batcher *batcher_new_from(const struct batcher_source *source, struct frame_writer *w);
void batcher_free(struct batcher *b);

/*
 * Drains the source once and appends whole Batch frames to `out`, CPU by CPU, at most
 * VS_BATCH_EVENTS_MAX records each. stacks: may be NULL. Returns the number of events in those
 * frames, or -errno of the source; then `out` still holds whole frames for everything that was
 * handed over before, and what could not be encoded is counted as dropped_user.
 */
long batcher_drain(struct batcher *b, struct byte_buffer *out,
		   const struct batcher_stack_sink *stacks);
/* Events that wait in the kernel now, of the CPU that has most: is a drain worth it? Cheap. */
uint64_t batcher_pending(const struct batcher *b);
/* The frames that the last drain appended, in order; valid until the next drain. */
const struct batcher_frame *batcher_frames(const struct batcher *b, size_t *n);
/* `events` of this CPU, delivered before, were thrown away by the caller (a full queue). */
void batcher_drop(struct batcher *b, uint16_t cpu, uint64_t events);

/* No event of any CPU older than this stream time follows: the `before` sample of the last drain
 * less its error and the source's lag, or the last proven watermark while a record is still being
 * written somewhere. */
uint64_t batcher_promise(const struct batcher *b);
/* Clock sample taken before the last drain. */
const struct clock_sample *batcher_sample(const struct batcher *b);
/* From the next drain on handlers that take less become no events but are counted, as
 * handler_summary.h says; 0: none. They are in no total and have no sequence number. */
void batcher_summarise(struct batcher *b, uint64_t handler_over_ns);
/* What was counted so far, by enum event_class; max_ns since the threshold changed. Valid as long
 * as the batcher. */
const struct message_untold *batcher_untold(const struct batcher *b);
/* Sums over all CPUs, as of the last drain. */
void batcher_totals_get(const struct batcher *b, struct batcher_totals *out);

#endif
