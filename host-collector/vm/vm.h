/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One VM: which process it is, which of its threads are vCPUs, and what QEMU says about it while we
 * look. Found by pid (thread names, what KVM knows: vcpu_threads.h), whatever the VMM, or by QMP
 * socket.
 */
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
	uint32_t number; /* the `vm` of VmInfo: 1 and up */
	pid_t pid;       /* 0: by QMP */
	/* NULL: by pid; both: QMP, and the pid must agree. Then it may be a path in the container
	 * of that process. */
	const char *qmp_path;
	const char *proc;    /* NULL: /proc */
	const char *debugfs; /* NULL: /sys/kernel/debug */
};

/*
 * Finds the VM. On error `why` receives one line that says what to do: -ESRCH (no such process),
 * -ENOEXEC (no VMM), -ENODATA (its vCPU threads cannot be told apart), -ENOTUNIQ (it runs several
 * VMs), -ETIMEDOUT (QMP busy), -EXDEV (we are in a PID namespace of our own), other -errno. A
 * process that QMP names is proven to be the VM: it serves the socket, the vCPU threads are threads
 * of it, and where KVM knows which threads run vCPUs, they are those.
 */
int vm_open(const struct vm_options *options, struct vm **out, char *why, size_t why_bytes);
void vm_close(struct vm *vm);
/* Valid until the next vm_rescan() or vm_close(). */
const struct message_vm_info *vm_info(const struct vm *vm);
size_t vm_n_vcpus(const struct vm *vm);
/* As it was when the VM was opened; borrowed. */
const struct vm_identity *vm_identity(const struct vm *vm);
/* Looks at the threads again. 1 if they changed, 0 if not, -ESRCH if the VMM is gone. */
int vm_rescan(struct vm *vm);

/* The QMP descriptor to poll for reading, or -1. */
int vm_qmp_fd(const struct vm *vm);
/* Was the monitor asked once and given back, because others need it (Proxmox)? */
bool vm_qmp_released(const struct vm *vm);
/* realtime_ns: when QEMU said so, 0 unknown. */
typedef void (*vm_note)(void *context, enum note_kind kind, uint64_t realtime_ns, const char *text);
/* Call when it is readable: hands over what QEMU says about the whole VM. 0, or -EPIPE when the
 * monitor is gone (the VM itself may live on); the descriptor is closed then. */
int vm_qmp_events(struct vm *vm, vm_note note, void *context);
/* As of the last event: does QEMU say that the VM is paused? */
bool vm_paused(const struct vm *vm);
/* Was a migration under way when the VM was opened? */
bool vm_migrates(const struct vm *vm);

#endif
