/* SPDX-License-Identifier: GPL-2.0-only */
/* The data and the process that name the addresses of stacks: the kernel's symbols (about 8 MiB)
 * and the namer, which reads the ELF files of processes (bpf/isolation/namer.h, unwind.h). The
 * streams of a daemon's VMs share one, because the kernel is the same and often the same tasks wake
 * their threads. */
#ifndef RECORD_STACK_NAMES_H
#define RECORD_STACK_NAMES_H

#include "bpf/symbols/kernel_symbols.h"
#include "bpf/isolation/namer.h"

struct stack_names {
	struct kallsyms *kallsyms; /* NULL: the kernel hides its addresses */
	struct namer *namer;
	/* number of streams */
	unsigned int users;
};

struct stack_names *stack_names_new(void); /* NULL on ENOMEM */
/* Frees it. No stream may use it any more. NULL is allowed. */
void stack_names_free(struct stack_names *n);
/* Add and remove a stream. Joining reads the kernel's symbols again if modules were loaded or
 * unloaded. */
void stack_names_join(struct stack_names *n);
void stack_names_leave(struct stack_names *n);

#endif
