/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What of this kernel's events is wanted: a variable of the guest programs that userspace changes
 * while they run. All zero: everything, and no stacks. Included by BPF programs and by userspace.
 */
#ifndef PROG_GUEST_WISH_H
#define PROG_GUEST_WISH_H

#include "proto/event.h"

enum { VS_WISH_PATTERNS = 8 };

/* A task's name, as two words, matches if it is `word` wherever `mask` has a bit. */
struct vs_wish_pattern {
	vs_u64 word[2], mask[2];
};

struct vs_guest_wish {
	vs_u64 classes_off; /* bits of enum event_class: nothing of them begins */
	vs_u64 exits_off;   /* of these, handlers that began before do not end either */
	vs_u64 sample_period_ns;
	vs_u64 stacks;     /* taken so far, the programs' */
	vs_u32 n_patterns; /* 0: all tasks */
	vs_u32 pad;
	struct vs_wish_pattern patterns[VS_WISH_PATTERNS];
};

#endif
