/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The descriptors of KVM that a process holds, from /proc/PID/fd: whoever holds a vCPU's is a VMM,
 * whatever it calls itself. Which thread runs a vCPU is seen in the system call that the thread
 * waits in, where neither KVM (bpf/kvm_vcpus.h), its debugfs nor the threads' names tell.
 */
#ifndef VM_KVM_FILES_H
#define VM_KVM_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/message.h"

enum { KVM_FILES_SEEN_MAX = 65536 }; /* descriptors of a process that are looked at */

struct kvm_file {
	int fd;
	uint32_t vcpu; /* KVM's number: on x86 the APIC id */
};

struct kvm_files {
	size_t n_vms; /* descriptors of VMs; one VM may have several */
	size_t n_vcpus;
	struct kvm_file vcpus[VS_CPUS_MAX]; /* each number once */
};

/* Fills `out`; 0 also if there are none. -ESRCH, -EACCES (not root), -errno. */
int kvm_files_read(const char *proc, pid_t pid, struct kvm_files *out);
/* Marks the threads of `info` that are inside KVM_RUN now, and asleep there, as those vCPUs.
 * Returns how many vCPUs of `files` have a thread then, by whatever source. */
size_t kvm_files_running(const char *proc, const struct kvm_files *files,
			 struct message_vm_info *info);

#endif
