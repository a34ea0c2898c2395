/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VM-exits by reason: how often, how long from kvm_exit to kvm_entry, and where that time went,
 * kept apart: in the kernel, in the VMM, off the CPU against its will, asleep. A halt's sleep is no
 * cost of the exit, and a preempted vCPU's wait is none either.
 *
 * What a capture at summary level counted instead of telling is in the figures, too: its quantiles
 * are half a bucket of proto/exit_bucket.h exact, 12.5 %.
 */
#ifndef TABLES_EXITS_H
#define TABLES_EXITS_H

#include "clock/histogram.h"
#include "host-collector/tables/figures_options.h"
#include "host-collector/model/model.h"

struct exit_reason {
	uint32_t vm, reason, isa;
	uint32_t vcpu;             /* only if per_vcpu */
	struct histogram handling; /* kernel and VMM alone, per exit */
	int64_t kernel_ns, vmm_ns; /* on a pCPU */
	int64_t scheduled_out_ns;  /* runnable, throttled, stopped */
	int64_t slept_ns;          /* halted, blocked */
	uint64_t torn;             /* whose end was not seen: in none of the above */
};

struct exits;

/* Subscribes to the model, which must not be fed any more once this is freed. With than_ns, exits
 * whose handling took less are in exits_handling_ns only. NULL on ENOMEM. */
struct exits *exits_new(struct model *m, const struct figures_options *options);
/* Forgets all figures, but not the exits that go on. */
void exits_clear(struct exits *x);
void exits_free(struct exits *x);
/* 0, or -ENOMEM: something could not be counted. */
int exits_error(const struct exits *x);
/* Item number `index`, NULL past the last. Borrowed. Of more than 16384 the least recently seen are
 * forgotten. */
const struct exit_reason *exits_reason(const struct exits *x, size_t index);
/* Kernel and VMM alone of all exits of a VM; of one vCPU's if per_vcpu (else vcpu is 0). */
int64_t exits_handling_ns(const struct exits *x, uint32_t vm, uint32_t vcpu);

/* "HLT", "EPT_VIOLATION", "npf", as the field writes them; "0x7b" if unknown. */
struct exit_name {
	char text[32];
	const char *meaning; /* "idles": what the guest did; "" if there is no more to say */
};
/* By value. A reason without a name here is its number in hexadecimal. */
struct exit_name exit_name(uint32_t isa, uint32_t reason);

#endif
