/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The descriptors of KVM that a process holds, from /proc/PID/fd. A process that holds a vCPU's
 * descriptor is treated as a VMM, whatever its name is. If neither KVM (bpf/kvmclock/kvm_vcpus.h),
 * its debugfs nor the thread names show which thread runs a vCPU, the system call in which the
 * thread sleeps does.
 */
#ifndef VM_KVM_FILES_H
#define VM_KVM_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/message.h"

enum { KVM_FILES_SEEN_MAX = 65536 }; /* descriptors of one process that are read */

struct kvm_file {
	int fd;
	uint32_t vcpu; /* KVM's number of the vCPU; on x86 its APIC id */
};

struct kvm_files {
	size_t n_vms; /* number of descriptors of VMs; one VM may have several */
	size_t n_vcpus;
	struct kvm_file vcpus[VS_CPUS_MAX]; /* each number once */
};

/* Reads the descriptors of a process. Returns 0, also if there are none, or -errno: -ESRCH (no such
 * process), -EACCES (not root). */
int kvm_files_read(const char *proc, pid_t pid, struct kvm_files *out);
/* Marks the threads of `info` that currently sleep in KVM_RUN as the vCPUs that they run. Returns
 * how many vCPUs of `files` then have a thread, from any source. */
size_t kvm_files_running(const char *proc, const struct kvm_files *files,
			 struct message_vm_info *info);

#endif
