/* SPDX-License-Identifier: GPL-2.0-only */
/* What kvm_clock.bpf.c hands to kvm_clock.c: events of a ring, and one record per vCPU of the
 * iterator. */
#ifndef PROG_KVM_CLOCK_SHARED_H
#define PROG_KVM_CLOCK_SHARED_H

#include <linux/types.h>

/* struct pvclock_vcpu_time_info, the guest's ABI (asm/pvclock-abi.h). */
struct vs_pvclock_page {
	__u32 version; /* odd while KVM writes */
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
	VS_KVM_CLOCK_OFFSET = 2, /* value: the new offset */
	VS_KVM_CLOCK_MASTER = 3, /* value: bit 0 used, bit 1 offsets matched */
};

struct vs_kvm_clock_event {
	__u64 time; /* CLOCK_MONOTONIC ns */
	__s32 tgid;
	__u32 vcpu;
	__u64 type;
	__u64 value;
	struct vs_pvclock_page pvclock;
};

struct vs_kvm_vcpu {
	__u64 kvm; /* which VM of the process: an address, compared only */
	__s32 tgid;
	__u32 vcpu;
	__u64 offset; /* l1_tsc_offset */
	__u64 ratio;  /* l1_tsc_scaling_ratio */
	/* Of the guest's pvclock page; 0: none registered. Their low 12 bits may differ, gpa's are
	 * right. */
	__u64 page_uhva, page_gpa;
	struct vs_pvclock_page pvclock; /* mul 0: this kernel does not keep it */
	__u32 master_used;
	__u32 offsets_matched;
};

#endif
