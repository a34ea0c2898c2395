/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stacks of a guest's tasks, on their way to userspace: each distinct one goes once, under an id
 * made from its addresses; TASK_STACK events then carry the id. Included by BPF programs and by
 * userspace.
 */
#ifndef PROG_GUEST_STACK_H
#define PROG_GUEST_STACK_H

#include "proto/event.h"

enum {
	VS_GUEST_STACK_FRAMES = 64, /* the innermost; a power of two */
	VS_GUEST_STACKS_KNOWN = 8192,
	VS_GUEST_STACKS_BYTES = 256 << 10, /* of new ones that wait */
};

struct vs_guest_stack {
	vs_s32 tgid; /* 0: of the kernel */
	vs_u32 id;   /* never 0 */
	vs_u32 n;
	vs_u32 role;                          /* enum vs_stack_role: how it was taken */
	vs_u64 frames[VS_GUEST_STACK_FRAMES]; /* leaf first */
};

struct vs_guest_stack_key {
	vs_s32 tgid;
	vs_u32 id;
};

#endif
