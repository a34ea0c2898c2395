/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which processes run VMs, and which of their threads runs which vCPU: what KVM itself knows
 * (struct kvm_vcpu), through a BPF iterator over the open files of processes. It changes nothing,
 * and asks neither the VMM nor the guest.
 *
 * Not thread-safe. Loading takes some 10 to 200 ms; a reading of one process well under a
 * millisecond since Linux 6.1, before that as long as one of all processes.
 */
#ifndef BPF_KVM_VCPUS_H
#define BPF_KVM_VCPUS_H

#include <sys/types.h>

#include "bpf/prog/kvm_vcpus_shared.h"

struct kvm_vcpus;

/* 0, -EPERM (not root), -EOPNOTSUPP (no such iterator, no BTF, no KVM), other -errno. */
int kvm_vcpus_open(struct kvm_vcpus **out);
void kvm_vcpus_close(struct kvm_vcpus *k); /* NULL is allowed */
/* Calls `seen` for each open file of a vCPU, of process `pid` or, if it is 0, of all: a vCPU that
 * has several descriptors comes several times. How many, or -errno. */
long kvm_vcpus_read(struct kvm_vcpus *k, pid_t pid,
		    void (*seen)(void *context, const struct vs_vcpu_file *file), void *context);

#endif
