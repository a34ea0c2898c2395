/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The looks: a timer ticks on each CPU, and if a condition holds at a tick, the stack of the task
 * that runs there is taken. The condition may count the hits that a tracepoint had on that CPU
 * since the previous tick. Included by BPF programs and by user space.
 *
 * User space writes struct vs_look, attaches a counting program to each tracepoint, and starts the
 * timers last. It changes nothing while they run.
 */
#ifndef PROG_LOOK_SHARED_H
#define PROG_LOOK_SHARED_H

#include "bpf/prog/user_slot.h"

enum { VS_LOOK_COUNTS = 8 }; /* tracepoints that one condition counts; a power of two */

struct vs_look {
	/* The tick after a late tick comes early. A tick that follows sooner than this is skipped,
	 * so that a condition never covers a time much shorter than the period. */
	vs_u64 least_ns;
	vs_u32 first_test; /* VS_USER_KEEP: there is no test */
	vs_u32 reserved;
	/* Their values come from VS_FROM_COUNT, VS_FROM_NUMBER and the current task. */
	struct vs_user_test tests[VS_USER_TESTS_MAX];
};

/* The counts of one CPU. */
struct vs_look_cpu {
	vs_u64 tick_ns;                /* CLOCK_MONOTONIC of the last tick; 0: none yet */
	vs_u64 total[VS_LOOK_COUNTS];  /* hits so far */
	vs_u64 before[VS_LOOK_COUNTS]; /* hits up to the last tick */
	vs_u64 since[VS_LOOK_COUNTS];  /* hits between the last two ticks */
};

#endif
