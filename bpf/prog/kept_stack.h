/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the stack at which a vCPU thread sleeps. Most sleeps are short, and their stacks are not
 * sent. So the programs do not copy again the parts that have not changed since the thread's last
 * sleep:
 *
 * - The kernel's unwinder takes about 2 us. At the same depth of the kernel stack it finds the same
 *   frames if all return addresses are unchanged. So the programs search the places of the return
 *   addresses once, and compare their values at each later sleep.
 * - A VMM calls KVM_RUN in a loop. During this call, the user stack is unchanged if all registers
 *   are unchanged.
 *
 * For BPF programs only.
 */
#ifndef PROG_KEPT_STACK_H
#define PROG_KEPT_STACK_H

#include "bpf/prog/stack.h"

enum {
	/* Words of a kernel stack that are searched: for the innermost return address, and above
	 * it. The verifier follows each step, so few instructions may be in one. */
	WALK_BEGIN_WORDS_MAX = 48,
	WALK_WORDS_MAX = 160,
	/* The innermost frames, of the program and its callers, lie below the program's context. No
	 * sleep changes them. */
	WALK_FRAMES_BELOW_MAX = 6,
};

static __always_inline bool word_is(__u64 at, __u64 value)
{
	__u64 word;

	return !bpf_probe_read_kernel(&word, sizeof(word), (void *)at) && word == value;
}

static __always_inline __u64 frame_of(const struct vs_stack *s, __u32 i)
{
	return s->kernel[i & (VS_STACK_FRAMES_MAX - 1)];
}

/* Returns whether the kernel stack is that of the thread's last sleep. The place of the outermost
 * frame is relative to the user registers, the places of the others are relative to the context:
 * between them a kernel may leave a gap whose size is random at each system call. */
static __always_inline bool kernel_stack_same(const struct vs_kept_stack *k)
{
	const struct vs_kernel_walk *w = &k->walk;

	if (!w->n || !word_is(w->top - sizeof(__u64), frame_of(&k->stack, k->stack.n_kernel - 1)))
		return false;
	for (__u32 i = 0; i < VS_STACK_FRAMES_MAX && i < w->n; i++) {
		if (!word_is(w->context + w->above[i], frame_of(&k->stack, w->first + i)))
			return false;
	}
	return true;
}

/* Searches the innermost return address above the context. Sets w->first to its frame, w->above[0]
 * to its place and w->found to 1; to 0 if there is none. */
static __always_inline void kernel_walk_begin(struct vs_kept_stack *k)
{
	struct vs_kernel_walk *w = &k->walk;
	const struct vs_stack *s = &k->stack;

	for (__u64 at = 0; at < 8 * WALK_BEGIN_WORDS_MAX; at += 8) {
		__u64 word;

		if (bpf_probe_read_kernel(&word, sizeof(word), (void *)(w->context + at)))
			return;
		for (__u32 i = 0; i < WALK_FRAMES_BELOW_MAX; i++) {
			if (word != s->kernel[i])
				continue;
			w->above[0] = (__u16)at;
			w->first = i;
			w->found = 1;
			return;
		}
	}
}

/* Searches the places of the return addresses, from the innermost. Finds none if an address occurs
 * twice, because then it is unknown which one the unwinder read. */
static __noinline void kernel_walk_learn(struct vs_kept_stack *k)
{
	struct vs_kernel_walk *w = &k->walk;
	const struct vs_stack *s = &k->stack;
	/* In memory, because the verifier follows each value that a register may have. */
	volatile __u32 *found = &w->found;
	__u64 from;

	*found = 0;
	if (!word_is(w->top - sizeof(__u64), frame_of(s, s->n_kernel - 1)))
		return;
	kernel_walk_begin(k);
	if (!*found)
		return;
	from = *(volatile __u16 *)&w->above[0];
	for (__u64 i = 1; i < WALK_WORDS_MAX; i++) {
		const __u64 at = from + 8 * i;
		const __u32 n = *found;
		__u64 word;

		if (w->first + n + 1 == s->n_kernel) {
			w->n = n;
			return;
		}
		if (w->context + at >= w->top ||
		    bpf_probe_read_kernel(&word, sizeof(word), (void *)(w->context + at)) ||
		    word == frame_of(s, w->first + n - 1))
			return;
		if (word != frame_of(s, w->first + n))
			continue;
		w->above[n & (VS_STACK_FRAMES_MAX - 1)] = (__u16)at;
		*found = n + 1;
	}
}

static __noinline void kernel_stack_take(void *ctx, struct vs_kept_stack *k)
{
	const __u32 n = k->stack.n_kernel;
	const __u64 middle = frame_of(&k->stack, n / 2);

	k->walk.n = 0;
	stack_fill_kernel(ctx, &k->stack);
	/* The search costs as much as the unwinder, so it is done only for a place where the thread
	 * often sleeps. */
	if (n && n == k->stack.n_kernel && middle == frame_of(&k->stack, n / 2))
		kernel_walk_learn(k);
}

/* Returns whether the user stack is that of the thread's last sleep. */
static __always_inline bool user_stack_same(struct vs_stack *s)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(current);
	__u64 now[VS_STACK_REGS];

	if (!s->user_bytes || !in_kvm_run(regs) || !user_registers_copy(now, regs))
		return false;
	for (int i = 0; i < VS_STACK_REGS; i++) {
		if (now[i] != s->regs[i])
			return false;
	}
	if ((s->copies + 1) % STACK_RELEARN_COPIES == 0)
		return false;
	s->copies++;
	return true;
}

/* Fills k->stack with the stack of the current thread. `k` is zeroed, or was last filled by the
 * same thread at the same place of the same program. */
static __noinline int kept_stack_fill(void *ctx, struct vs_kept_stack *k)
{
	/* The verifier forbids most arithmetic with pointers, so they are read back as numbers. */
	*(volatile __u64 *)&k->walk.top = (__u64)bpf_task_pt_regs(bpf_get_current_task_btf());
	*(volatile __u64 *)&k->walk.context = (__u64)ctx;
	if (!kernel_stack_same(k))
		kernel_stack_take(ctx, k);
	if (!user_stack_same(&k->stack))
		stack_fill_user(&k->stack, true);
	return 0;
}

#endif
