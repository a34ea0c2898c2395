/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names for the addresses of this guest's stacks: the kernel's from /proc/kallsyms, a process's
 * from the files that it has mapped (their symbol tables, no debug information). What has no name
 * keeps its file and the offset in it; the address alone if the process is gone.
 *
 * Bounded: 8 MiB for the kernel, and the symbols of the 32 files used last, 64 Ki functions each.
 */
#ifndef AGENT_SYMBOLS_H
#define AGENT_SYMBOLS_H

#include "bpf/capture.h"
#include "proto/message.h"

struct symbols;

/* Reads the kernel's symbols (100 ms). NULL on ENOMEM. */
struct symbols *symbols_new(void);
void symbols_free(struct symbols *s);
/* Does the kernel show its addresses? Else its frames have no names. */
bool symbols_kernel(const struct symbols *s);
/* The message that tells `stack`. Of a kernel's stack at a switch, what lies below the scheduler is
 * left out: it is how the stack was taken. */
void symbols_name(struct symbols *s, const struct capture_guest_stack *stack,
		  struct message_stack *out);

#endif
