/* SPDX-License-Identifier: GPL-2.0-only */
/* The filter of a guest's capture: a variable of the guest's BPF programs that user space
 * changes while they run. All zero: every event, and no stacks. Included by BPF programs and by
 * user space. */
#ifndef PROG_GUEST_REQUEST_H
#define PROG_GUEST_REQUEST_H

#include "proto/event.h"

enum { VS_REQUEST_PATTERNS = 8 };

/* A pattern for a task's name, in two words. A name matches if it equals `word` in all bits that
 * are set in `mask`. */
struct vs_request_pattern {
	vs_u64 word[2], mask[2];
};

struct vs_guest_request {
	vs_u64 classes_off; /* bits of enum event_class: of these classes, only the exits of
			       handlers are emitted */
	vs_u64 exits_off;   /* bits of enum event_class: of these classes, not even the exits are
			       emitted */
	vs_u64 sample_period_ns;
	vs_u64 stacks;     /* number of stacks taken so far; the programs increment it */
	vs_u32 n_patterns; /* number of patterns; 0: all tasks */
	vs_u32 pad;
	struct vs_request_pattern patterns[VS_REQUEST_PATTERNS];
};

#endif
