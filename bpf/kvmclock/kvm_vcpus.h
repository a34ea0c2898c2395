/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the processes that run VMs, and the thread that runs each vCPU. The data come from KVM
 * (struct kvm_vcpu), through a BPF iterator over the open files of processes. Reading them changes
 * nothing, and neither the VMM nor the guest notices it.
 *
 * Not thread-safe. Loading takes 10 to 200 ms. Since Linux 6.1, reading one process takes well
 * under a millisecond. On an older kernel it takes as long as reading all processes.
 */
#ifndef BPF_KVM_VCPUS_H
#define BPF_KVM_VCPUS_H

#include <sys/types.h>

#include "bpf/prog/kvm_vcpus_shared.h"

struct kvm_vcpus;

/* Loads the iterator. Returns 0 or -errno: -EPERM (not root), -ENOMEM, -EOPNOTSUPP (the kernel has
 * no such iterator, no BTF or no KVM). */
int kvm_vcpus_open(struct kvm_vcpus **out);
void kvm_vcpus_close(struct kvm_vcpus *k); /* NULL is allowed */
/* Calls `seen` for each open file of a vCPU, of process `pid` or, if it is 0, of all processes.
 * Calls it several times for a vCPU that has several descriptors. Returns the number of calls or
 * -errno. */
long kvm_vcpus_read(struct kvm_vcpus *k, pid_t pid,
		    void (*seen)(void *context, const struct vs_vcpu_file *file), void *context);

#endif
