/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From raw stack records to what the host's stream says about them: a STACK frame with names, once
 * per distinct stack, and a STACK event for every wait that refers to it.
 *
 * Records are copied while a drain hands them over. User stacks are named by another process
 * (bpf/isolation/namer.h), without waiting for it: a stack is written by the flush that finds its
 * names there, 0.3 s later at most, with its kernel's half and the address where the thread was if
 * it has no names by then. Until then nothing promises that its time is over. At most 200 stacks
 * of long waits are named per second, 100 of short ones, and 1000 samples; what comes beyond that,
 * or beyond 128 waiting, is counted and let go: the wait itself stays on the timeline, without its
 * stack.
 */
#ifndef RECORD_STACK_WRITER_H
#define RECORD_STACK_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/capture/capture.h"
#include "host-collector/record/stack_names.h"
#include "proto/buffer.h"
#include "proto/frame.h"

struct stack_writer;

struct stack_writer_stats {
	uint64_t seen;     /* records offered */
	uint64_t named;    /* that became an event */
	uint64_t distinct; /* STACK frames written */
	uint64_t skipped;  /* by the limits */
	uint64_t empty;    /* no address, or the process was gone */
	uint64_t bare;     /* of those named: user stacks without names, for want of a namer */
};

/* host_hz: of the TSC. shared: borrowed, NULL: names of its own. kernel_names: false where
 * /proc/kallsyms hides its addresses. NULL on ENOMEM. */
struct stack_writer *stack_writer_new(uint64_t host_hz, struct stack_names *shared,
				      bool *kernel_names);
void stack_writer_free(struct stack_writer *s);
/* Stacks of this process will come: has its symbols read now. */
void stack_writer_expect(struct stack_writer *s, pid_t tgid);
/* A record of a drain under way; time is TSC ticks, +-err_ticks. Copies. */
void stack_writer_offer(struct stack_writer *s, const struct capture_stack *stack,
			uint64_t err_ticks, uint64_t now_ms);
/*
 * Appends STACK frames, then a Batch of STACK events, to `out`, for what was offered and is named,
 * and asks for the names of the rest. promised: what the last heartbeat promised; no event is
 * stamped before it. promise: what the next may promise. now_ms: as offered. 0, -ENOMEM.
 */
int stack_writer_flush(struct stack_writer *s, struct frame_writer *w, uint64_t promised,
		       uint64_t promise, uint64_t now_ms, struct byte_buffer *out);
/* No later heartbeat may promise more than this while stacks wait for their names. UINT64_MAX: none
 * waits. */
uint64_t stack_writer_hold(const struct stack_writer *s);
/* Waits up to `ms` for the names of those asked for; what has none then is written without by the
 * next flush. */
void stack_writer_settle(struct stack_writer *s, int ms);
void stack_writer_stats_get(const struct stack_writer *s, struct stack_writer_stats *out);

#endif
