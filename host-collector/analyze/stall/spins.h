/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distinguishes a guest task that computes from one that spins for something that another guest CPU
 * has. The guest's events look the same in both cases, so this uses samples of the task's stack
 * (vcpuscope-agent --sample-hz). A table of kernel functions that spin (spins.c) decides, by the
 * innermost frames.
 */
#ifndef STALL_SPINS_H
#define STALL_SPINS_H

#include "host-collector/analyze/stall/facts.h"

enum spin_kind {
	SPIN_UNKNOWN, /* the stack's frames are missing */
	SPIN_NONE,    /* computes */
	SPIN_LOCK,    /* spins for a lock */
	SPIN_CALL,    /* waits until other CPUs have run a function that it sent them */
};

/* Classifies a stack of the guest's kernel. Sets *function to the function that decides, or to the
 * innermost one; the string belongs to the stack. */
enum spin_kind spin_of_stack(const struct stack *stack, const char **function);
/* Fills f->sampled and the kind of each sample. The facts must be closed. */
void spins_fill(struct stall_facts *f, const struct model *m);
/* Returns true if the frames of all samples have arrived. */
bool spins_named(const struct stall_facts *f, const struct model *m);

#endif
