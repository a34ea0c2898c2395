/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fills a struct vs_stack with the current task's kernel frames, its user registers and the first
 * 16 KiB of its user stack. User space unwinds the user stack, because neither QEMU nor libc keeps
 * frame pointers.
 *
 * Cost: usually one copy without a page fault, because the end of the stack's mapping is known from
 * the previous copy.
 */
#ifndef PROG_STACK_H
#define PROG_STACK_H

#include "bpf/prog/follow.h"
#include "bpf/prog/kernel.h"

enum {
	STACK_PAGE_BYTES = 4096,
	/* number of copies after which the end is searched again: a page may have been absent */
	STACK_RELEARN_COPIES = 256,
};

/* Returns the end of the mapping that holds sp, but at most the end of the fourth page after that
 * of sp. */
static __always_inline __u64 user_stack_end(__u64 sp)
{
	__u64 end = (sp | (STACK_PAGE_BYTES - 1)) + 1;
	char byte;

	for (int i = 0; i < VS_STACK_USER_BYTES / STACK_PAGE_BYTES; i++) {
		if (bpf_probe_read_user(&byte, 1, (void *)end))
			break;
		end += STACK_PAGE_BYTES;
	}
	return end;
}

static __always_inline bool user_stack_read(struct vs_stack *s, __u64 sp)
{
	__u64 bytes = s->user_end - sp;

	if (bytes > VS_STACK_USER_BYTES)
		bytes = VS_STACK_USER_BYTES;
	s->user_bytes = 0;
	if (bpf_probe_read_user(s->user, (__u32)bytes, (void *)sp))
		return false;
	s->user_bytes = (__u32)bytes;
	return true;
}

static __always_inline void user_stack_copy(struct vs_stack *s, __u64 sp, bool remembers)
{
	const bool known = remembers && s->user_end > sp &&
			   s->user_end - sp <= VS_STACK_USER_BYTES + STACK_PAGE_BYTES &&
			   s->copies % STACK_RELEARN_COPIES;

	if (known && user_stack_read(s, sp))
		return;
	s->user_end = user_stack_end(sp);
	user_stack_read(s, sp);
}

/* Fills the kernel frames of `s`. */
static __always_inline void stack_fill_kernel(void *ctx, struct vs_stack *s)
{
	const long bytes = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0);

	s->n_kernel = bytes > 0 ? (__u32)bytes / sizeof(s->kernel[0]) : 0;
}

/* Fills the user registers and the user stack of `s`. remembers: `s` is zeroed, or was last filled
 * by the same thread. */
static __always_inline void stack_fill_user(struct vs_stack *s, bool remembers)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(current);
	__u64 sp;

	s->has_user = 0;
	s->user_bytes = 0;
	s->copies = remembers ? s->copies + 1 : 0;
	if (!current->mm)
		return;
	sp = user_registers_copy(s->regs, regs);
	if (!sp)
		return;
	s->has_user = 1;
	user_stack_copy(s, sp, remembers);
}

#endif
