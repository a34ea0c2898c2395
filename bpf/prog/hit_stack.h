/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stack of a hit of an event that the user chose with `stack`. It has a number, which is also a
 * value of the hit (VS_FROM_STACK): so a reader joins both, whatever their times are. For BPF
 * programs.
 */
#ifndef PROG_HIT_STACK_H
#define PROG_HIT_STACK_H

#include "bpf/prog/kernel.h"

enum { HIT_STACKS = 1024 }; /* a power of two */

/* The numbers of stacks whose hits are being emitted: the task above, the number below. By task:
 * the kernel may run another task on this CPU between both, or a program of a nested interrupt. */
__u64 hit_stacks[HIT_STACKS];
__u32 hit_stack_last;

/* Every CPU has an idle task with the tid 0. */
static __always_inline __u32 hit_stack_task(void)
{
	const __u32 tid = (__u32)bpf_get_current_pid_tgid();

	return tid ? tid : 1u << 31 | bpf_get_smp_processor_id();
}

/* Returns the number of the stack of the current task's hit; 0: it has none. */
static __always_inline __u64 hit_stack_number(void)
{
	const __u32 task = hit_stack_task();
	const __u64 both = *(volatile __u64 *)&hit_stacks[task & (HIT_STACKS - 1)];

	return both >> 32 == task ? (__u32)both : 0;
}

/* Sets that number. Returns what hit_stack_end() takes. */
static __always_inline __u64 hit_stack_begin(__u32 number)
{
	const __u64 outer = hit_stack_number();
	const __u32 task = hit_stack_task();

	*(volatile __u64 *)&hit_stacks[task & (HIT_STACKS - 1)] = (__u64)task << 32 | number;
	return outer;
}

static __always_inline void hit_stack_end(__u64 outer)
{
	hit_stack_begin((__u32)outer);
}

#endif
