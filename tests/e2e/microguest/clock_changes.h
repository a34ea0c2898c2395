/* SPDX-License-Identifier: GPL-2.0-only */
/* Everything that can move the clocks of the VMM's two vCPUs, done to them in turn. */
#ifndef MICROGUEST_CLOCK_CHANGES_H
#define MICROGUEST_CLOCK_CHANGES_H

#include "vmm.h"

/* What is done to a VM. 0 or -errno. */
int clock_forward(struct vmm *v);
int clock_back(struct vmm *v);
int offset_of_one(struct vmm *v);
int offsets_equal_again(struct vmm *v);

/* Creates the VM, makes each change, and fails the test that runs unless what is predicted is what
 * the guest reads: watched from the VM's birth (tracepoints), and by a collector that attaches
 * after the change (passive sources only). */
void clock_changes_check(struct vmm *v);

#endif
