/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table `exits`: counts VM-exits by reason and divides the time from kvm_exit to kvm_entry into
 * KVM, VMM, scheduled out and asleep. Only the time in KVM and in the VMM is the cost of an exit;
 * the sleep of a halt and the wait of a preempted vCPU are not.
 *
 * Exits that a capture at level summary counted in the kernel are included. Their lengths are known
 * to half a bucket of proto/exit_bucket.h, 12.5 %.
 */
#ifndef TABLES_EXITS_H
#define TABLES_EXITS_H

#include "clock/histogram.h"
#include "host-collector/tables/analysis.h"
#include "host-collector/model/model.h"

struct exit_reason {
	uint32_t vm, reason, isa;
	uint32_t vcpu;             /* only if per_vcpu */
	struct histogram handling; /* time in KVM and the VMM, per exit */
	int64_t kernel_ns, vmm_ns; /* time in KVM; time in the VMM */
	int64_t scheduled_out_ns;  /* time runnable, throttled or stopped */
	int64_t slept_ns;          /* time halted or blocked */
	uint64_t torn;             /* incomplete exits; in no other member */
};

struct exits;

/* With than_ns, exits whose handling took less count in exits_handling_ns() only. clear() keeps
 * exits in progress. */
extern const struct analysis exits_analysis;
/* Returns reason number `index`, NULL past the last. Borrowed. Keeps 16384 reasons; further ones
 * replace the least recently seen. */
const struct exit_reason *exits_reason(const struct exits *x, size_t index);
/* Returns the time in KVM and the VMM of all exits of a VM, in ns; with per_vcpu, of one vCPU.
 * Without per_vcpu, pass vcpu 0. */
int64_t exits_handling_ns(const struct exits *x, uint32_t vm, uint32_t vcpu);

#endif
