/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the VMs of this machine: every process that holds vCPUs of KVM and can run them, and
 * emulated VMs, which it recognizes by QEMU's name. It reads the vCPUs from the kernel through BPF
 * (bpf/kvmclock/kvm_vcpus.h), or, if that is not possible, from the open files of all processes in
 * /proc. */
#ifndef VM_DISCOVER_H
#define VM_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-collector/vm/identity.h"

struct vm_found {
	pid_t pid;
	bool kvm;     /* it holds vCPUs of KVM; false: an emulating QEMU, recognized by its name */
	bool several; /* several VMs in one process, which cannot be distinguished */
	size_t n_vcpus; /* number of KVM's vCPUs */
	struct vm_identity identity;
};

struct vm_wanted {
	const uint32_t *uids; /* only VMs of these users; NULL: of all users */
	size_t n_uids;
	bool emulated; /* also emulated VMs */
};

struct vm_finder;

/* Allocates a finder. proc: NULL for /proc. Returns NULL on ENOMEM. Not thread-safe. */
struct vm_finder *vm_finder_new(const char *proc);
void vm_finder_free(struct vm_finder *f); /* NULL is allowed */
/* Finds the current VMs, at most `max`, and sorts them by pid. If there are more, it keeps those
 * that it found first. Returns their number. Reads files of /proc: with 300 processes, half of them
 * QEMU, 1 to 4 ms for the names and 5 to 12 ms for the identities. So the daemon calls it on a
 * worker thread. */
size_t vm_finder_look(struct vm_finder *f, const struct vm_wanted *wanted, struct vm_found *out,
		      size_t max);
/* Returns whether the last look read the vCPUs through BPF. Otherwise it read /proc, which takes
 * longer and also finds processes that only hold another process's descriptors. */
bool vm_finder_by_bpf(const struct vm_finder *f);

#endif
