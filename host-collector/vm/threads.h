/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What /proc tells about a VMM's process: its threads, and which of them QEMU calls vCPUs (by the
 * names that `-name X,debug-threads=on` gives them); and what KVM's debugfs adds (thread -> APIC
 * id). All paths are below a root that tests can choose.
 */
#ifndef VM_THREADS_H
#define VM_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/message.h"

/* Is `comm` the name of a vCPU thread? Then its index and accelerator ("kvm", "tcg"). */
bool thread_name_is_vcpu(const char *comm, uint32_t *vcpu, const char **accelerator);

/* Fills qemu_pid, n_threads, threads and, from the names, accelerator, in order of tid; at most
 * VS_THREADS_MAX threads. 0, -ESRCH (no such process), -errno. */
int threads_scan(const char *proc, pid_t pid, struct message_vm_info *info);
/* A vCPU by KVM's own number (on x86 the APIC id), and the thread that runs it. */
struct vcpu_thread {
	int32_t tid;
	uint32_t vcpu;
};
/* From DEBUGFS/kvm/TID-*\/vcpuN/pid, those that are threads of `info`, at most `max`.
 * *several becomes true if they are of more than one VM. */
size_t threads_debugfs(const char *debugfs, struct message_vm_info *info, struct vcpu_thread *out,
		       size_t max, bool *several);
/* Marks threads of `info` as what KVM says they run. all: KVM named all vCPUs, and a thread that
 * only calls itself one is none. */
void threads_apply_kvm(struct message_vm_info *info, const struct vcpu_thread *rows, size_t n,
		       bool all);
/* comm of a process; "" if it is gone. */
void threads_comm(const char *proc, pid_t pid, char comm[16]);
/* Are the ids in /proc those that the kernel's events bear? Not in a PID namespace of our own. */
bool threads_ids_global(const char *proc);
/* A thread's id in /proc, and the one that the thread itself sees: they differ if its process has a
 * PID namespace of its own. */
struct thread_ids {
	int32_t tid, own;
};
/* The threads of a process, at most `max`. How many, -ESRCH (no such process), -errno. */
ssize_t threads_ids(const char *proc, pid_t pid, struct thread_ids *out, size_t max);
/* Processes whose name says QEMU, at most `max`, in order of pid. Returns how many. */
size_t threads_find_qemu(const char *proc, pid_t *pids, size_t max);

#endif
