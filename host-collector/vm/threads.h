/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the threads of a VMM's process from /proc. QEMU's option `-name X,debug-threads=on` gives
 * vCPU threads recognizable names. KVM's debugfs adds the APIC id of the vCPU that a thread runs.
 * Tests may replace the root of all paths. */
#ifndef VM_THREADS_H
#define VM_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/message.h"

/* Returns whether `comm` is QEMU's name of a vCPU thread; then sets the vCPU's index and the
 * accelerator ("kvm", "tcg"). */
bool thread_name_is_vcpu(const char *comm, uint32_t *vcpu, const char **accelerator);

/* Reads the threads of a process, at most VS_THREADS_MAX. Fills qemu_pid, n_threads, threads
 * (sorted by tid) and, from the thread names, accelerator. Returns 0 or -errno; -ESRCH: no such
 * process. */
int threads_scan(const char *proc, pid_t pid, struct message_vm_info *info);
/* Returns whether the process still has the threads of `info`, by their ids. Reads one directory,
 * threads_scan() a file of each thread, too. */
bool threads_stay(const char *proc, const struct message_vm_info *info);
/* Returns the thread of `info` with this id, or NULL. */
struct message_vm_thread *threads_by_tid(const struct message_vm_info *info, int32_t tid);
/* A vCPU by KVM's number (on x86 the APIC id), and the thread that runs it. */
struct vcpu_thread {
	int32_t tid;
	uint32_t vcpu;
};
/* Reads the vCPUs whose threads are threads of `info` from DEBUGFS/kvm/TID-FD/vcpuN/pid, at most
 * `max`. Sets *several to true if they belong to several VMs. Returns their number. */
size_t threads_debugfs(const char *debugfs, struct message_vm_info *info, struct vcpu_thread *out,
		       size_t max, bool *several);
/* Marks the threads of `info` as the vCPUs that KVM reports in `rows`. all: KVM reported a thread
 * for each vCPU, so a thread that is only named as a vCPU is unmarked. */
void threads_apply_kvm(struct message_vm_info *info, const struct vcpu_thread *rows, size_t n,
		       bool all);
/* Reads the name of a process; "" if it is gone. */
void threads_comm(const char *proc, pid_t pid, char comm[16]);
/* Returns whether the ids in /proc are those in the kernel's events. False in a PID namespace other
 * than the initial one. */
bool threads_ids_global(const char *proc);
/* The id of a thread in /proc, and its id in its own PID namespace. */
struct thread_ids {
	int32_t tid, own;
};
/* Reads the ids of a process's threads, at most `max`. Returns their number or -errno; -ESRCH: no
 * such process. */
ssize_t threads_ids(const char *proc, pid_t pid, struct thread_ids *out, size_t max);
/* Finds the processes with a name of QEMU, at most `max`, sorted by pid. Returns their number. */
size_t threads_find_qemu(const char *proc, pid_t *pids, size_t max);

#endif
