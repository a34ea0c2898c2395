/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which threads of a VMM run vCPUs. QEMU's thread names, or its monitor, have marked some already;
 * for all that hold descriptors of KVM, KVM itself is asked: its debugfs, else struct kvm_vcpu by
 * BPF, else the system calls in which the threads wait, else the names that other VMMs give
 * their threads. What KVM says counts more than names.
 */
#ifndef VM_VCPU_THREADS_H
#define VM_VCPU_THREADS_H

#include "host-collector/vm/kvm_files.h"
#include "host-collector/vm/threads.h"

struct kvm_vcpus;

struct vcpu_threads {
	const char *proc, *debugfs;
	bool by_bpf;            /* false: the tree is a test's */
	bool no_bpf;            /* it was tried: this kernel has not what it takes */
	struct kvm_files files; /* what the process holds */
	struct kvm_vcpus *kvm;  /* open while something is missing */
	uint64_t threads;       /* which threads there were: a hash */
	size_t asked;           /* KVM, since the threads changed */
	bool all;               /* KVM named a thread for each vCPU */
	bool several;           /* VMs in one process */
	size_t n_rows;
	struct vcpu_thread rows[VS_CPUS_MAX]; /* by KVM's word */
};

void vcpu_threads_init(struct vcpu_threads *v, const char *proc, const char *debugfs, bool by_bpf);
void vcpu_threads_fini(struct vcpu_threads *v);
/* Marks threads of `info`, freshly scanned. patient: waits up to 40 ms for vCPUs to fall asleep,
 * if there is no other source. */
void vcpu_threads_apply(struct vcpu_threads *v, struct message_vm_info *info, bool patient);
/* Does KVM say that this thread runs no vCPU, although it has named a thread for each? */
bool vcpu_threads_refute(const struct vcpu_threads *v, int32_t tid);

#endif
