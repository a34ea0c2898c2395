/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Userspace's half of guest_stack.h: the stacks that arrived.
 */
#ifndef BACKEND_GUEST_STACKS_H
#define BACKEND_GUEST_STACKS_H

#include <bpf/libbpf.h>

#include "bpf/capture/capture.h"

struct guest_stacks;

/* Before load; not wanted: their maps are to take no memory. except: a process that has none. 0 or
 * -errno. */
int guest_stacks_prepare(struct bpf_object *object, bool wanted, pid_t except);
/* After load. 0 or -errno; *out is to be closed in any case. */
int guest_stacks_open(struct bpf_object *object, struct guest_stacks **out);
void guest_stacks_close(struct guest_stacks *g);
/* As capture_guest_stacks() and capture_guest_stacks_forget(). */
long guest_stacks_take(struct guest_stacks *g, capture_guest_stack_taker take, void *context,
		       size_t max);
void guest_stacks_forget(struct guest_stacks *g);

#endif
