/* SPDX-License-Identifier: GPL-2.0-only */
/* What kvm_vcpus.bpf.c hands to kvm_vcpus.c: one record for each open file of a vCPU. */
#ifndef PROG_KVM_VCPUS_SHARED_H
#define PROG_KVM_VCPUS_SHARED_H

#include <linux/types.h>

struct vs_vcpu_file {
	__u64 kvm;  /* which VM: an address, compared only */
	__s32 tgid; /* the process that holds the file */
	__s32 tid;  /* the thread that entered the guest last; 0: none did */
	__u32 vcpu; /* KVM's number: on x86 the APIC id */
	/* KVM takes commands of one address space only: is it that of the holder? A process to
	 * which somebody else's descriptor was passed cannot run the VM. */
	__u32 owned;
};

#endif
