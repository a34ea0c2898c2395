/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A minimal VMM on /dev/kvm, as a process of its own: one VM with two vCPUs. It changes the VM's
 * clocks at the test's commands, and does nothing else. One thread runs both vCPUs in turn, and
 * only while a command needs them.
 */
#ifndef MICROGUEST_VMM_H
#define MICROGUEST_VMM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { VMM_VCPUS = 2 };

/* One reading by the guest. host_before and host_after are the VMM's TSC around KVM_RUN. */
struct vmm_pair {
	uint64_t host_before, host_after;
	uint64_t guest_tsc, kvmclock_ns;
};

struct vmm {
	pid_t pid;
	int socket;
};

/* Forks the VMM, which has no VM until vmm_create(). Returns 0 or -errno. */
int vmm_start(struct vmm *v);
/* Ends the VMM and waits for its end. May be called twice. */
void vmm_stop(struct vmm *v);
/* Keeps the VMM on one CPU: without the master clock KVM changes a vCPU's parameters whenever its
 * thread migrates. Returns 0 or -errno. */
int vmm_pin(struct vmm *v);

/* Commands. Each returns 0, or the -errno that the VMM's process got. */
int vmm_create(struct vmm *v);
int vmm_read_clock(struct vmm *v, uint32_t vcpu, struct vmm_pair *out);
int vmm_guest_adds_to_tsc(struct vmm *v, uint32_t vcpu, int64_t ticks);
/* Adds `ns` to the value of KVM_GET_CLOCK and sets it with KVM_SET_CLOCK. */
int vmm_set_clock(struct vmm *v, int64_t ns);
/* Calls KVM_KVMCLOCK_CTRL on every vCPU. It sets the flag that shows the guest that it was paused.
 */
int vmm_clock_ctrl(struct vmm *v);
/* Set and get KVM_VCPU_TSC_OFFSET. -ENXIO: this KVM does not have it. A KVM may accept an offset
 * without applying it; vmm_offset() gets the offset in force. */
int vmm_set_offset(struct vmm *v, uint32_t vcpu, uint64_t ticks);
int vmm_offset(struct vmm *v, uint32_t vcpu, uint64_t *out);
/* Gets whether the master clock is on (KVM_CLOCK_TSC_STABLE of KVM_GET_CLOCK). */
int vmm_master_clock(struct vmm *v, bool *on);
/* Sets both vCPUs' rate to `permille` of the host's. -EOPNOTSUPP: no TSC scaling here. */
int vmm_scale(struct vmm *v, uint32_t permille);

#endif
