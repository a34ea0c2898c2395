/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names for the addresses of this guest's stacks: the kernel's from /proc/kallsyms, at once; a
 * process's from the files that it has mapped, by another process without rights, later
 * (bpf/isolation/namer.h, symbols_body.h).
 *
 * Bounded: 8 MiB for the kernel, 48 MiB for that process, and 64 stacks that wait for names.
 */
#ifndef AGENT_SYMBOLS_H
#define AGENT_SYMBOLS_H

#include "bpf/capture/capture.h"
#include "proto/message.h"

struct symbols;

/* A stack with its names; borrowed for the call. */
typedef void (*symbols_taker)(void *context, const struct message_stack *stack);

/* Reads the kernel's symbols (100 ms). NULL on ENOMEM. */
struct symbols *symbols_new(symbols_taker take, void *context);
/* Stacks that wait for names are gone. NULL is allowed. */
void symbols_free(struct symbols *s);
/* Does the kernel show its addresses? Else its frames have no names. */
bool symbols_kernel(const struct symbols *s);
/* False: a process's frames will have no names here, for what reads them cannot be confined. */
bool symbols_user(const struct symbols *s);
/* Is there room for one more? */
bool symbols_room(const struct symbols *s);
/* Hands the stack over with its names, now or in a later symbols_poll(). Of a kernel's stack at a
 * switch, what lies below the scheduler is left out: it is how the stack was taken. */
void symbols_name(struct symbols *s, const struct capture_guest_stack *stack);
/* Hands over what has got its names. Does not wait. */
void symbols_poll(struct symbols *s);
/* Waits up to `ms` for names; hands over what has none then without. */
void symbols_finish(struct symbols *s, int ms);
/* Spent by the processes that find the names, until their last answer. */
uint64_t symbols_cpu_ns(const struct symbols *s);

#endif
