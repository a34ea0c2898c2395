/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Host TSC <-> guest TSC under KVM, exact in integers (arch/x86/kvm/x86.c, kvm_scale_tsc() and
 * kvm_read_l1_tsc()):
 *
 *	guest = ((host * ratio) >> frac_bits) + offset   mod 2^64
 *
 * frac_bits is 48 on VMX and 32 on SVM; debugfs shows ratio and offset per vCPU. The way back
 * subtracts the offset first and divides then. Where the guest runs slower, several host ticks
 * read the same guest tick; the first of them is returned.
 */
#ifndef CLOCK_TSC_SCALING_H
#define CLOCK_TSC_SCALING_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/types.h"

enum { TSC_FRAC_BITS_VMX = 48, TSC_FRAC_BITS_SVM = 32 };

struct tsc_scaling {
	uint64_t ratio;
	uint32_t frac_bits; /* 0: not scaled, ratio is ignored */
	uint64_t offset;    /* a negative one as its two's complement */
};

/* frac_bits below 64, ratio not 0 if scaled. The functions below require it. */
bool tsc_scaling_valid(const struct tsc_scaling *s);
struct guest_tsc tsc_scaling_to_guest(const struct tsc_scaling *s, struct host_tsc host);
/*
 * The first host TSC at which the guest TSC has reached `guest`. While it reads exactly `guest` the
 * host's lies in [*first, *first + *span]; *span is 0 for a value that the guest TSC steps over.
 * false if that is beyond 2^64.
 */
bool tsc_scaling_to_host(const struct tsc_scaling *s, struct guest_tsc guest,
			 struct host_tsc *first, uint64_t *span);

#endif
