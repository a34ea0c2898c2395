/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Distinguishes a guest task that computes from a task that spins until another guest CPU releases
 * a lock or runs a function. The guest's events look the same in both cases. So this module uses
 * samples of the task's stack (vcpuscope-agent --sample-hz): it looks up the innermost frames in a
 * table of kernel functions that spin (spins.c).
 */
#ifndef STALL_SPINS_H
#define STALL_SPINS_H

#include "host-collector/analyze/stall/facts.h"

enum spin_kind {
	SPIN_UNKNOWN, /* the frames of the stack have not arrived */
	SPIN_NONE,    /* computes */
	SPIN_LOCK,    /* spins for a lock */
	SPIN_CALL,    /* waits until other CPUs have run a function that it sent them */
};

/* Classifies a stack of the guest's kernel. Sets *function to the function that decides, or to the
 * innermost one; the string belongs to the stack. */
enum spin_kind spin_of_stack(const struct stack *stack, const char **function);
/* Fills f->sampled and the kind of each sample. Call it after facts_close(). */
void spins_fill(struct stall_facts *f, const struct model *m);
/* Returns true if the frames of all samples have arrived. */
bool spins_named(const struct stall_facts *f, const struct model *m);

#endif
