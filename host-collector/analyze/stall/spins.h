/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does a guest's task compute, or does it spin for something that another CPU of the guest has? The
 * events of its kernel look alike; samples of its stack (vcpuscope-agent --sample-hz) tell. One
 * table of the kernel's functions that spin decides, by the innermost frame.
 */
#ifndef STALL_SPINS_H
#define STALL_SPINS_H

#include "host-collector/analyze/stall/facts.h"

enum spin_kind {
	SPIN_UNKNOWN, /* a stack whose frames have not come */
	SPIN_NONE,
	SPIN_LOCK, /* for a lock */
	SPIN_CALL, /* until other CPUs have run the function that it sent them */
};

/* Of a stack in the guest's kernel. `function`: set to the name that decides, inside the stack; the
 * innermost one if none does. */
enum spin_kind spin_of_stack(const struct stack *stack, const char **function);
/* Fills `sampled`, and the kind of every sample. Facts that are closed. */
void spins_fill(struct stall_facts *f, const struct model *m);
/* Have the frames of all its samples come? */
bool spins_named(const struct stall_facts *f, const struct model *m);

#endif
