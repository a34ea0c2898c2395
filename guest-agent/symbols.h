/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds names for the addresses in the guest's stacks. Names of the kernel come from
 * /proc/kallsyms at once. Names of a process come later, from its mapped files, by a separate
 * process without rights (bpf/isolation/namer.h, symbols_body.h).
 *
 * Memory: some MiB for the symbols of the kernel, at most 48 MiB for that process, and at most 64
 * stacks that wait for names.
 */
#ifndef AGENT_SYMBOLS_H
#define AGENT_SYMBOLS_H

#include "bpf/capture/capture.h"
#include "proto/message.h"

struct symbols;

/* Receives a stack with its names. The stack is borrowed during the call. */
typedef void (*symbols_taker)(void *context, const struct message_stack *stack);

/* Reads the kernel's symbols (takes 100 ms). Returns NULL if out of memory. */
struct symbols *symbols_new(symbols_taker take, void *context);
/* Drops the stacks that wait for names. Accepts NULL. */
void symbols_free(struct symbols *s);
/* Returns true if the kernel shows its addresses. Else its frames get no names. */
bool symbols_kernel(const struct symbols *s);
/* Returns false if frames of processes get no names, because the process that reads their files
 * cannot be confined. */
bool symbols_user(const struct symbols *s);
/* Returns true if one more stack can wait for names. */
bool symbols_room(const struct symbols *s);
/* Delivers the stack with its names, now or in a later symbols_poll(). Removes the innermost
 * frames of a kernel stack at a task switch: they only show how the stack was taken. */
void symbols_name(struct symbols *s, const struct capture_guest_stack *stack);
/* Delivers the stacks whose names have arrived. Does not wait. */
void symbols_poll(struct symbols *s);
/* Waits up to `ms` milliseconds for names, then delivers the remaining stacks without names. */
void symbols_finish(struct symbols *s, int ms);
/* Returns the CPU time, ns, of the processes that find names, up to their last answer. */
uint64_t symbols_cpu_ns(const struct symbols *s);

#endif
