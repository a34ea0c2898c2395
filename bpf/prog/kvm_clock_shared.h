/* SPDX-License-Identifier: GPL-2.0-only */
/* The records that kvm_clock.bpf.c sends to kvm_clock.c: events through a ring, and one record per
 * vCPU from the iterator. */
#ifndef PROG_KVM_CLOCK_SHARED_H
#define PROG_KVM_CLOCK_SHARED_H

#include <linux/types.h>

/* struct pvclock_vcpu_time_info, an ABI between KVM and the guest (asm/pvclock-abi.h). */
struct vs_pvclock_page {
	__u32 version; /* odd while KVM writes the page */
	__u32 pad0;
	__u64 tsc_timestamp;
	__u64 system_time;
	__u32 tsc_to_system_mul;
	__s8 tsc_shift;
	__u8 flags;
	__u8 pad[2];
};

enum vs_kvm_clock_type {
	VS_KVM_CLOCK_PVCLOCK = 1,
	VS_KVM_CLOCK_OFFSET = 2, /* value: the new TSC offset */
	VS_KVM_CLOCK_MASTER = 3, /* value: bit 0: master clock used; bit 1: TSC offsets match */
};

struct vs_kvm_clock_event {
	__u64 time; /* CLOCK_MONOTONIC ns */
	__s32 tgid;
	__u32 vcpu;
	__u64 type;
	__u64 value;
	struct vs_pvclock_page pvclock;
};

/* Bits of vs_kvm_vcpu.protected_by. */
enum vs_kvm_protected_by {
	VS_KVM_SEV = 1,          /* kvm_sev_info.active */
	VS_KVM_SEV_ES = 2,       /* kvm_sev_info.es_active */
	VS_KVM_STATE_HIDDEN = 4, /* kvm_vcpu_arch.guest_state_protected */
};

struct vs_kvm_vcpu {
	__u64 kvm; /* address of the VM's struct kvm; only compared, to distinguish VMs */
	__s32 tgid;
	__u32 vcpu;
	__u64 offset; /* l1_tsc_offset */
	__u64 ratio;  /* l1_tsc_scaling_ratio */
	/* Address of the guest's pvclock page in the VMM's memory and in the guest's; 0: none. The
	 * low 12 bits of page_uhva may be wrong; those of page_gpa are right. */
	__u64 page_uhva, page_gpa;
	struct vs_pvclock_page pvclock; /* tsc_to_system_mul 0: unknown in this kernel */
	__u32 master_used;
	__u32 offsets_matched;
	/* How the VM is protected from the host. vm_type: kvm_arch.vm_type, KVM_X86_*_VM of
	 * linux/kvm.h; also 0 before Linux 6.8. A VM of type 0 may be SEV or SEV-ES. */
	__u32 vm_type;
	__u32 protected_by;
};

#endif
