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
#include "host-collector/tables/figures_options.h"
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

/* Subscribes to the model. The caller must not feed the model after exits_free(). `options` are
 * copied and may be NULL. With than_ns, exits whose handling took less count in
 * exits_handling_ns() only. Returns NULL on ENOMEM. */
struct exits *exits_new(struct model *m, const struct figures_options *options);
/* Clears all counts. Exits in progress stay. */
void exits_clear(struct exits *x);
void exits_free(struct exits *x);
/* Returns 0, or -ENOMEM if something could not be counted. */
int exits_error(const struct exits *x);
/* Returns reason number `index`, NULL past the last. Borrowed. Keeps 16384 reasons; further ones
 * replace the least recently seen. */
const struct exit_reason *exits_reason(const struct exits *x, size_t index);
/* Returns the time in KVM and the VMM of all exits of a VM, in ns; with per_vcpu, of one vCPU.
 * Without per_vcpu, pass vcpu 0. */
int64_t exits_handling_ns(const struct exits *x, uint32_t vm, uint32_t vcpu);

#endif
