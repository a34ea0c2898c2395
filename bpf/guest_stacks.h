/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Userspace's half of guest_stack.h: the timers that take samples, and the stacks that arrived. It
 * samples the CPUs that are online when it begins.
 */
#ifndef BPF_GUEST_STACKS_H
#define BPF_GUEST_STACKS_H

#include <bpf/libbpf.h>

#include "bpf/capture.h"

struct guest_stacks;

/* Before load; hz 0: leaves everything out. 0 or -errno. */
int guest_stacks_prepare(struct bpf_object *object, uint32_t hz);
/* After load. 0 or -errno with one line in `why`. */
int guest_stacks_open(struct bpf_object *object, uint32_t hz, struct guest_stacks **out, char *why,
		      size_t why_bytes);
void guest_stacks_close(struct guest_stacks *g);
/* As capture_guest_stacks() and capture_guest_stacks_forget(). */
long guest_stacks_take(struct guest_stacks *g, capture_guest_stack_taker take, void *context,
		       size_t max);
void guest_stacks_forget(struct guest_stacks *g);

#endif
