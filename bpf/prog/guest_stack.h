/* SPDX-License-Identifier: GPL-2.0-only */
/* Stacks of a guest's tasks. The programs send each distinct stack to user space once, with an id
 * that is a hash of its addresses. TASK_STACK events carry the id. Included by BPF programs and by
 * user space. */
#ifndef PROG_GUEST_STACK_H
#define PROG_GUEST_STACK_H

#include "proto/event.h"

enum {
	VS_GUEST_STACK_FRAMES = 64, /* number of frames kept, from the innermost; a power of two */
	VS_GUEST_STACKS_KNOWN = 8192,
	VS_GUEST_STACKS_BYTES = 256 << 10, /* size of the ring of stacks to be read */
};

struct vs_guest_stack {
	vs_s32 tgid; /* process; 0: a kernel stack */
	vs_u32 id;   /* hash of the addresses, never 0 */
	vs_u32 n;
	vs_u32 role; /* enum vs_stack_role of the event that first had this stack */
	vs_u64 frames[VS_GUEST_STACK_FRAMES]; /* addresses, leaf first */
};

struct vs_guest_stack_key {
	vs_s32 tgid;
	vs_u32 id;
};

#endif
