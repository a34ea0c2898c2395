/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What it takes to name the addresses of stacks: the kernel's symbols (some 8 MiB) and a
 * process that reads the ELF files of processes (bpf/isolation/namer.h, unwind.h). The streams of a
 * daemon's VMs share one: it is the same kernel, and often the same tasks that wake their threads.
 */
#ifndef RECORD_STACK_NAMES_H
#define RECORD_STACK_NAMES_H

#include "bpf/symbols/kernel_symbols.h"
#include "bpf/isolation/namer.h"

struct stack_names {
	struct kallsyms *kallsyms; /* NULL: hidden */
	struct namer *namer;
	unsigned int users;
};

struct stack_names *stack_names_new(void); /* NULL on ENOMEM */
/* When nobody uses it. NULL is allowed. */
void stack_names_free(struct stack_names *n);
/* A stream begins: reads the kernel's symbols if modules came or went since. */
void stack_names_join(struct stack_names *n);
void stack_names_leave(struct stack_names *n);

#endif
