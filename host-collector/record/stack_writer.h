/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From raw stack records to what the host's stream says about them: a STACK frame with names, once
 * per distinct stack, and a STACK event for every wait that refers to it.
 *
 * Records are copied while a drain hands them over and named afterwards, so that naming does not
 * stretch the drain (and with it the error of its stamps). At most 200 stacks are named per
 * second, and 1000 samples; what comes beyond that, or beyond 128 waiting, is counted and let go:
 * the wait itself stays on the timeline, without its stack.
 */
#ifndef RECORD_STACK_WRITER_H
#define RECORD_STACK_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/capture.h"
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
};

/* host_hz: of the TSC. shared: borrowed, NULL: names of its own. kernel_names: false where
 * /proc/kallsyms hides its addresses. NULL on ENOMEM. */
struct stack_writer *stack_writer_new(uint64_t host_hz, struct stack_names *shared,
				      bool *kernel_names);
void stack_writer_free(struct stack_writer *s);
/* Stacks of this process will come: reads its symbols now. */
void stack_writer_expect(struct stack_writer *s, pid_t tgid);
/* A record of a drain under way; time is TSC ticks, +-err_ticks. Copies. */
void stack_writer_offer(struct stack_writer *s, const struct capture_stack *stack,
			uint64_t err_ticks, uint64_t now_ms);
/*
 * Names what was offered and appends STACK frames, then a Batch of STACK events, to `out`.
 * promised: what the last heartbeat promised; no event is stamped before it. promise: what the next
 * may promise. 0, -ENOMEM.
 */
int stack_writer_flush(struct stack_writer *s, struct frame_writer *w, uint64_t promised,
		       uint64_t promise, struct byte_buffer *out);
void stack_writer_stats_get(const struct stack_writer *s, struct stack_writer_stats *out);

#endif
