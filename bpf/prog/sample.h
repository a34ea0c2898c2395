/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Takes the stacks of a guest's tasks (guest_stack.h): while request.sample_period_ns is not 0, and
 * if a look wants them (look.h). For BPF programs only.
 *
 * User stacks are unwound by frame pointers. In code that was built without frame pointers, only
 * the leaf is found.
 *
 * Cost: about 6 us per sample, 3 to 5 us per switch to sleep (tests/bench/bench_guest_stacks).
 */
#ifndef PROG_SAMPLE_H
#define PROG_SAMPLE_H

#include <asm-generic/errno-base.h>

#include "bpf/prog/emit.h"
#include "bpf/prog/guest_stack.h"
#include "bpf/prog/request.h"

const volatile __s32 sample_except; /* process whose stacks are not taken; 0: none */

/* The stacks that were sent to user space. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, VS_GUEST_STACKS_KNOWN);
	__type(key, struct vs_guest_stack_key);
	__type(value, __u8);
} known_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, VS_GUEST_STACKS_BYTES);
} new_stacks SEC(".maps");

/* One buffer per role, because a sample may interrupt a switch. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VS_STACK_LOOK + 1);
	__type(key, __u32);
	__type(value, struct vs_guest_stack);
} stack_scratch SEC(".maps");

/* Returns a hash of the addresses: FNV-1a over words, folded to 32 bits, never 0. */
static __always_inline __u32 stack_id(const struct vs_guest_stack *s)
{
	__u64 h = 0xcbf29ce484222325;

	for (int i = 0; i < VS_GUEST_STACK_FRAMES; i++) {
		if ((__u32)i >= s->n)
			break;
		h = (h ^ s->frames[i]) * 0x100000001b3;
		h ^= h >> 32;
	}
	return (__u32)h ? (__u32)h : 1;
}

/* Takes the current stack and sends it to user space if it is new. Returns its id, or 0 if there is
 * no stack or no room for it. */
static __always_inline __u32 stack_take(void *ctx, struct vs_guest_stack *s, __s32 tgid,
					__u64 flags)
{
	const long bytes = bpf_get_stack(ctx, s->frames, sizeof(s->frames), flags);
	struct vs_guest_stack_key key = {.tgid = tgid};
	const __u8 one = 1;

	if (bytes <= 0)
		return 0;
	s->n = (__u32)bytes / sizeof(s->frames[0]);
	s->tgid = tgid;
	s->id = key.id = stack_id(s);
	/* -EEXIST: the stack was sent before. After any other error it is unknown whether the stack
	 * was sent, so it is sent again. Before Linux 6.3 the helper returns an int; the upper half
	 * of the register is undefined. */
	if ((__s32)bpf_map_update_elem(&known_stacks, &key, &one, BPF_NOEXIST) == -EEXIST)
		return s->id;
	if (!bpf_ringbuf_output(&new_stacks, s, sizeof(*s), BPF_RB_NO_WAKEUP))
		return s->id;
	/* There is no room. The next event with this stack tries again. */
	bpf_map_delete_elem(&known_stacks, &key);
	return 0;
}

/* Emits a TASK_STACK event with the current task's stacks. Out of line, because most captures take
 * no stacks. */
static __noinline void stack_emit(void *ctx, __u32 role, __u64 period_ns)
{
	const __u64 both = bpf_get_current_pid_tgid();
	struct vs_guest_stack *s = bpf_map_lookup_elem(&stack_scratch, &role);
	struct vs_event e = {};

	if (!s || !(__u32)both || (__s32)(both >> 32) == sample_except ||
	    current_shown() == VS_TASK_OTHER)
		return;
	__sync_fetch_and_add(&request.stacks, 1);
	s->role = role;
	ev_set_task_stack_kernel(&e, stack_take(ctx, s, 0, 0));
	ev_set_task_stack_user(&e, stack_take(ctx, s, (__s32)(both >> 32), BPF_F_USER_STACK));
	ev_set_task_stack_role(&e, role);
	ev_set_task_stack_period_ns(&e, period_ns);
	emit(VS_EVENT_TASK_STACK, (__s32)both, (__s32)(both >> 32), e.arg0, e.arg1);
}

#endif
