/* SPDX-License-Identifier: GPL-2.0-only */
/* The record that kvm_vcpus.bpf.c sends to kvm_vcpus.c for each open file of a vCPU. */
#ifndef PROG_KVM_VCPUS_SHARED_H
#define PROG_KVM_VCPUS_SHARED_H

#include <linux/types.h>

struct vs_vcpu_file {
	__u64 kvm;  /* address of the VM's struct kvm; only compared, to distinguish VMs */
	__s32 tgid; /* process that holds the file */
	__s32 tid;  /* thread that last entered the guest; 0: none */
	__u32 vcpu; /* KVM's vcpu_id; on x86 the APIC id */
	/* 1: the VM belongs to the address space of the process. KVM accepts commands from that
	 * address space only, so a process that received the descriptor from another cannot run the
	 * VM. */
	__u32 owned;
};

#endif
