/* SPDX-License-Identifier: GPL-2.0-only */
/* Represents one VM: its process, its vCPU threads, and what QEMU reports about it while it is
 * open. The VM is found by pid (thread names and KVM: vcpu_threads.h), for every VMM, or by QMP
 * socket. Not thread-safe. */
#ifndef VM_VM_H
#define VM_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-collector/vm/identity.h"
#include "proto/message.h"

struct vm;

struct vm_options {
	uint32_t number; /* `vm` of VmInfo: 1 or more */
	pid_t pid;       /* process id of the VMM; 0: find it by QMP */
	/* Path of the QMP socket; NULL: find the VM by pid. If both are given, `pid` must serve the
	 * socket; then the path may be one in the container of that process. */
	const char *qmp_path;
	const char *proc;    /* NULL: /proc */
	const char *debugfs; /* NULL: /sys/kernel/debug */
};

/*
 * Finds the VM. Returns 0, or -errno with one line in `why` that says what to do: -ESRCH (no such
 * process), -ENOEXEC (no VMM), -ENODATA (its vCPU threads cannot be found), -ENOTUNIQ (it runs
 * several VMs), -ETIMEDOUT (QMP busy), -EXDEV (the caller is in a PID namespace of its own),
 * others.
 *
 * If QMP names the process, vm_open() proves that it is the VM: it serves the socket, the named
 * vCPU threads are its threads, and they are those that KVM reports, if KVM reports all.
 */
int vm_open(const struct vm_options *options, struct vm **out, char *why, size_t why_bytes);
/* Closes the VM. NULL is allowed. */
void vm_close(struct vm *vm);
/* Returns the VM's process and threads. Valid until the next vm_rescan() or vm_close(). */
const struct message_vm_info *vm_info(const struct vm *vm);
size_t vm_n_vcpus(const struct vm *vm);
/* Returns the identity as of vm_open(). Borrowed. */
const struct vm_identity *vm_identity(const struct vm *vm);
/* Returns the VMM's version as its monitor reported it (qmp_version()); "": unknown. Borrowed. */
const char *vm_version(const struct vm *vm);
/* Sets the protection that vm_info() contains. */
void vm_protect(struct vm *vm, enum vm_protection protection);
/* Reads the threads again. Returns 1 if they changed, 0 if not, or -errno; -ESRCH: the VMM is
 * gone. */
int vm_rescan(struct vm *vm);
/* Returns whether the process still has the threads of vm_info(), by their ids. Costs less than
 * vm_rescan(), but does not see that a thread has another name. */
bool vm_threads_stay(const struct vm *vm);

/* Returns the QMP descriptor to poll for reading, or -1. Borrowed. */
int vm_qmp_fd(const struct vm *vm);
/* Returns whether vm_open() used the monitor and closed it, because others need it (Proxmox). */
bool vm_qmp_released(const struct vm *vm);
/* Receives a note about the VM. realtime_ns: time of QEMU's event (CLOCK_REALTIME), 0 unknown. */
typedef void (*vm_note)(void *context, enum note_kind kind, uint64_t realtime_ns, const char *text);
/* Passes QEMU's events that concern the whole VM to `note`. Call it when the descriptor is
 * readable. Returns 0, or -EPIPE if the monitor is gone; then the descriptor is closed, but the VM
 * may still run. */
int vm_qmp_events(struct vm *vm, vm_note note, void *context);
/* Returns whether the VM is paused, according to QEMU's last event. */
bool vm_paused(const struct vm *vm);
/* Returns whether a migration was in progress when the VM was opened. */
bool vm_migrates(const struct vm *vm);

#endif
