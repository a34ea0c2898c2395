/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by kvm_clock.c (tracepoints) and kvm_clock_snapshot.c (snapshot). */
#ifndef KVMCLOCK_KVM_CLOCK_INTERNAL_H
#define KVMCLOCK_KVM_CLOCK_INTERNAL_H

#include <stdbool.h>
#include <bpf/libbpf.h>

#include "bpf/kvmclock/kvm_clock.h"
#include "bpf/prog/kvm_clock_shared.h"

enum { KVM_CLOCK_VALUES_MAX = 8 * 1024 }; /* 1024 vCPUs by eight sources */

/* The last value of one source, for one part of one vCPU. */
struct kvm_clock_said {
	struct message_vm_clock value;
	uint64_t read_tsc; /* snapshot: host TSC at which its last reading began */
};

/* Returns the last value with the source, VM, vCPU and part (tsc, pvclock, master) of `key`, or
 * NULL. Borrowed until the next kvm_clock_say(). */
struct kvm_clock_said *kvm_clock_said_find(struct kvm_clock *k, const struct message_vm_clock *key);
/* Delivers `value` to the sink if it differs from the last one. Returns 1 if it was delivered, else
 * 0 or -ENOMEM. */
int kvm_clock_say(struct kvm_clock *k, const struct message_vm_clock *value, uint64_t read_tsc,
		  const struct kvm_clock_sink *sink);

/* Returns the BPF iterator, or NULL if this kernel has none. */
struct bpf_program *kvm_clock_iterator(struct kvm_clock *k);
/* Writes the VM number of a followed process to *vm. Returns 0 or -ENOENT (not followed). */
int kvm_clock_vm(struct kvm_clock *k, pid_t pid, uint32_t *vm);
/* Stores how the VM of a followed process is protected. */
void kvm_clock_protect(struct kvm_clock *k, pid_t pid, enum vm_protection protection);
/* Converts a pvclock page. Returns false if its parameters are not a valid kvmclock line. */
bool kvm_clock_pvclock(const struct vs_pvclock_page *page, struct message_vm_clock_pvclock *out);

#endif
