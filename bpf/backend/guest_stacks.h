/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the stacks that the guest's BPF programs send (guest_stack.h). */
#ifndef BACKEND_GUEST_STACKS_H
#define BACKEND_GUEST_STACKS_H

#include <bpf/libbpf.h>

#include "bpf/capture/capture.h"

struct guest_stacks;

/* Sets up the maps of the stacks; call it before the object is loaded. wanted: false makes the maps
 * as small as possible. except: process whose stacks are not taken; 0: none. Returns 0 or -errno.
 */
int guest_stacks_prepare(struct bpf_object *object, bool wanted, pid_t except);
/* Call it after the object was loaded. Returns 0 or -errno. The caller closes *out also after an
 * error. */
int guest_stacks_open(struct bpf_object *object, struct guest_stacks **out);
void guest_stacks_close(struct guest_stacks *g);
/* Implement capture_guest_stacks() and capture_guest_stacks_forget(). */
long guest_stacks_take(struct guest_stacks *g, capture_guest_stack_taker take, void *context,
		       size_t max);
void guest_stacks_forget(struct guest_stacks *g);

#endif
