/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the threads of a VMM that run vCPUs. QEMU's thread names or its monitor may have marked
 * some. If the process holds descriptors of KVM, these sources are tried in turn: KVM's debugfs,
 * struct kvm_vcpu through BPF, the thread names of other VMMs, the system calls in which the
 * threads sleep. What KVM reports overrides names.
 */
#ifndef VM_VCPU_THREADS_H
#define VM_VCPU_THREADS_H

#include "host-collector/vm/kvm_files.h"
#include "host-collector/vm/threads.h"

struct kvm_vcpus;

struct vcpu_threads {
	const char *proc, *debugfs;
	bool by_bpf;            /* false: `proc` is a test's */
	bool no_bpf;            /* loading the BPF iterator failed */
	struct kvm_files files; /* the process's descriptors of KVM */
	struct kvm_vcpus *kvm;  /* BPF iterator, open while vCPUs without a thread remain */
	uint64_t threads;       /* hash of the thread ids at the last scan */
	size_t asked;           /* readings of KVM since the threads changed */
	bool all;               /* KVM reported a thread for each vCPU */
	bool several;           /* the process runs several VMs */
	size_t n_rows;
	struct vcpu_thread rows[VS_CPUS_MAX]; /* the vCPUs as KVM reports them */
};

void vcpu_threads_init(struct vcpu_threads *v, const char *proc, const char *debugfs, bool by_bpf);
void vcpu_threads_fini(struct vcpu_threads *v);
/* Marks the vCPU threads of `info`, which has just been scanned. patient: wait up to 40 ms until
 * vCPUs sleep in KVM_RUN if there is no other source. */
void vcpu_threads_apply(struct vcpu_threads *v, struct message_vm_info *info, bool patient);
/* Returns whether KVM reported a thread for each vCPU and this thread is none of them. */
bool vcpu_threads_refute(const struct vcpu_threads *v, int32_t tid);

#endif
