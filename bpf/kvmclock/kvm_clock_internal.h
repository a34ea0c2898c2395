/* SPDX-License-Identifier: GPL-2.0-only */
/* What kvm_clock.c (programs, changes) and kvm_clock_snapshot.c (passive sources) share. */
#ifndef KVMCLOCK_KVM_CLOCK_INTERNAL_H
#define KVMCLOCK_KVM_CLOCK_INTERNAL_H

#include <stdbool.h>
#include <bpf/libbpf.h>

#include "bpf/kvmclock/kvm_clock.h"
#include "bpf/prog/kvm_clock_shared.h"

enum { KVM_CLOCK_VALUES_MAX = 8 * 1024 }; /* 1024 vCPUs by eight sources */

/* The last word of one source on one part of one vCPU. */
struct kvm_clock_said {
	struct message_vm_clock value;
	uint64_t read_tsc; /* a snapshot's: when reading it began last */
};

/* What the source of `key` said last of this VM, vCPU and part (tsc, pvclock, master); or NULL. */
struct kvm_clock_said *kvm_clock_said_find(struct kvm_clock *k, const struct message_vm_clock *key);
/* Hands `value` to the sink unless this source said the same before. 1: handed out, 0 or -errno. */
int kvm_clock_say(struct kvm_clock *k, const struct message_vm_clock *value, uint64_t read_tsc,
		  const struct kvm_clock_sink *sink);

/* The iterator, NULL where this kernel has none. */
struct bpf_program *kvm_clock_iterator(struct kvm_clock *k);
/* -ENOENT: not followed. */
int kvm_clock_vm(struct kvm_clock *k, pid_t pid, uint32_t *vm);
/* false: no line that anybody could convert by. */
bool kvm_clock_pvclock(const struct vs_pvclock_page *page, struct message_vm_clock_pvclock *out);

#endif
