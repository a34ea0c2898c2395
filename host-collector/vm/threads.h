/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What /proc tells about a QEMU process: its threads and which of them are vCPUs (by the names
 * that `-name X,debug-threads=on` gives them), its name, its accelerator; and what KVM's debugfs
 * adds (thread -> APIC id). All paths are below a root that tests can choose.
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
/* Fills name from the command line's -name (else "qemu-PID"). */
void threads_vm_name(const char *proc, pid_t pid, struct message_vm_info *info);
/* Marks vCPUs and their APIC ids by DEBUGFS/kvm/PID-*\/vcpuN/pid (the number N is the APIC id on
 * x86). Returns how many it knew. */
size_t threads_apply_debugfs(const char *debugfs, struct message_vm_info *info);
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
