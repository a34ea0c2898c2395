/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns raw stack records into frames of the host's stream: one STACK frame with names for each
 * distinct stack, and a STACK event for each wait or sample that refers to it.
 *
 * A drain hands over records, which are copied. Another process names user stacks
 * (bpf/isolation/namer.h) while the writer continues. The flush that finds the names writes the
 * stack. After 0.3 s without names it is written with its kernel frames and the address at which
 * the thread was. Until then no heartbeat may promise that the stack's time is complete.
 *
 * Limits per second: 200 stacks of long waits, 100 of short waits, 1000 samples and 1000 hits of
 * chosen events. At most 128 stacks
 * wait for names. Stacks beyond these limits are counted and dropped; the wait itself stays on the
 * timeline without a stack.
 *
 * If a record is equal, in all registers, addresses and bytes, to one that was named within the
 * last 30 s, it has the same stack. Such a record needs no answer of the other process.
 */
#ifndef RECORD_STACK_WRITER_H
#define RECORD_STACK_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/capture/capture.h"
#include "host-collector/record/stack_names.h"
#include "proto/buffer.h"
#include "proto/codec.h"
#include "proto/frame.h"

struct stack_writer;

struct stack_writer_stats {
	uint64_t seen;     /* records offered */
	uint64_t named;    /* records that became an event */
	uint64_t distinct; /* STACK frames written */
	uint64_t skipped;  /* records dropped by the limits */
	uint64_t empty;    /* records without an address, or whose process was gone */
	uint64_t bare;     /* user stacks written without names, because no namer answered */
};

/* Allocates a writer. host_hz: TSC frequency of the host. shared: borrowed; NULL: its own names.
 * *kernel_names: false if /proc/kallsyms hides its addresses. Returns NULL on ENOMEM. */
struct stack_writer *stack_writer_new(uint64_t host_hz, struct stack_names *shared,
				      bool *kernel_names);
void stack_writer_free(struct stack_writer *s);
/* Announces stacks of this process, so that the namer reads its symbols now. */
void stack_writer_expect(struct stack_writer *s, pid_t tgid);
/* Returns the number of the stack of a record that needs no names; 0: it needs them. Later, the
 * record can be offered with this number in `known` instead of its addresses and bytes. */
uint32_t stack_writer_find(const struct stack_writer *s, const struct capture_stack *stack,
			   uint64_t now_ms);
/* Offers a record of the current drain; copies it. err_ticks: bound on the error of its time, in
 * TSC ticks. */
void stack_writer_offer(struct stack_writer *s, const struct capture_stack *stack,
			uint64_t err_ticks, uint64_t now_ms);
/*
 * Appends STACK frames to `out` and sets *batch to STACK events, for the offered stacks that are
 * named (n_events 0: none). The batch belongs behind these frames and is valid until the next call.
 * Requests the names of the others. promised: watermark of the last heartbeat; no event gets an
 * older time. promise: the most that the next heartbeat may promise. now_ms: same clock as for
 * stack_writer_offer(). Returns 0 or -errno.
 */
int stack_writer_flush(struct stack_writer *s, struct frame_writer *w, uint64_t promised,
		       uint64_t promise, uint64_t now_ms, struct byte_buffer *out,
		       struct batch *batch);
/* Returns the latest time that a heartbeat may promise while stacks wait for their names, or
 * UINT64_MAX if none waits. */
uint64_t stack_writer_hold(const struct stack_writer *s);
/* Waits up to `ms` milliseconds for the requested names. The next flush writes the stacks that have
 * no names by then without names. */
void stack_writer_settle(struct stack_writer *s, int ms);
void stack_writer_stats_get(const struct stack_writer *s, struct stack_writer_stats *out);

#endif
