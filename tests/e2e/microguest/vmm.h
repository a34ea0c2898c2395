/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A VMM on /dev/kvm, small enough to be read at once: one VM with two vCPUs, in a process of its
 * own, which does to the VM's clocks what the test tells it and nothing else. One thread runs both
 * vCPUs in turn, only while a command needs it.
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

/* Forks the VMM; the VM exists only after vmm_create. 0 or -errno. */
int vmm_start(struct vmm *v);
/* Ends and reaps it; idempotent. */
void vmm_stop(struct vmm *v);
/* Keeps the VMM on one CPU: without the master clock KVM changes a vCPU's parameters whenever its
 * thread migrates. Returns 0 or -errno. */
int vmm_pin(struct vmm *v);

/* Each: 0 or -errno, as the VMM's process met it. */
int vmm_create(struct vmm *v);
int vmm_read_clock(struct vmm *v, uint32_t vcpu, struct vmm_pair *out);
int vmm_guest_adds_to_tsc(struct vmm *v, uint32_t vcpu, int64_t ticks);
/* KVM_SET_CLOCK to what KVM_GET_CLOCK says plus `ns`. */
int vmm_set_clock(struct vmm *v, int64_t ns);
/* KVM_KVMCLOCK_CTRL on every vCPU: "the guest was paused". */
int vmm_clock_ctrl(struct vmm *v);
/* KVM_VCPU_TSC_OFFSET; -ENXIO: this KVM has no such control. A KVM may take an offset and not apply
 * it: what vmm_offset says is in force. */
int vmm_set_offset(struct vmm *v, uint32_t vcpu, uint64_t ticks);
int vmm_offset(struct vmm *v, uint32_t vcpu, uint64_t *out);
/* KVM's word (KVM_CLOCK_TSC_STABLE of KVM_GET_CLOCK). */
int vmm_master_clock(struct vmm *v, bool *on);
/* Sets both vCPUs' rate to `permille` of the host's. -EOPNOTSUPP: no TSC scaling here. */
int vmm_scale(struct vmm *v, uint32_t permille);

#endif
