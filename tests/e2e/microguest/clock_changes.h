/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes each kind of change that can alter the clocks of the VMM's two vCPUs, one after the other.
 */
#ifndef MICROGUEST_CLOCK_CHANGES_H
#define MICROGUEST_CLOCK_CHANGES_H

#include "vmm.h"

/* Each makes one change to a VM. Returns 0 or -errno. */
int clock_forward(struct vmm *v);
int clock_back(struct vmm *v);
int offset_of_one(struct vmm *v);
int offsets_equal_again(struct vmm *v);

/* Creates the VM and makes each change. Fails the running test if the guest's clocks differ from
 * what two collectors predict: one that watches the VM from its start (tracepoints), and one that
 * attaches after the change (only sources other than tracepoints). */
void clock_changes_check(struct vmm *v);

#endif
