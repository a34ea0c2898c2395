/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the VMs of this machine: every process that holds a vCPU of KVM's and can run it, and
 * emulated ones by QEMU's name. The kernel is asked (bpf/kvm_vcpus.h); where it cannot be, the open
 * files of all processes are read from /proc.
 */
#ifndef VM_DISCOVER_H
#define VM_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-collector/vm/identity.h"

struct vm_found {
	pid_t pid;
	bool kvm;       /* it holds vCPUs of KVM; false: QEMU by its name, which emulates */
	bool several;   /* VMs in one process: they cannot be told apart */
	size_t n_vcpus; /* of KVM */
	struct vm_identity identity;
};

struct vm_wanted {
	const uint32_t *uids; /* of these users only; NULL: of all */
	size_t n_uids;
	bool emulated; /* those without KVM, too */
};

struct vm_finder;

/* proc: NULL is /proc. NULL on ENOMEM. One thread at a time may use it. */
struct vm_finder *vm_finder_new(const char *proc);
void vm_finder_free(struct vm_finder *f); /* NULL is allowed */
/* The VMs that there are now, at most `max`, in order of pid; of more, those that were met first.
 * Returns how many. */
size_t vm_finder_look(struct vm_finder *f, const struct vm_wanted *wanted, struct vm_found *out,
		      size_t max);
/* Did the last look ask the kernel? Else it read /proc, which takes longer, and finds those that
 * merely hold somebody else's descriptors, too. */
bool vm_finder_by_bpf(const struct vm_finder *f);

#endif
