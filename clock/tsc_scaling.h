/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Converts between host TSC and guest TSC with KVM's integer arithmetic (arch/x86/kvm/x86.c,
 * kvm_scale_tsc() and kvm_read_l1_tsc()):
 *
 *	guest = ((host * ratio) >> frac_bits) + offset   mod 2^64
 *
 * frac_bits is 48 on VMX and 32 on SVM; debugfs shows ratio and offset of each vCPU. The inverse
 * subtracts the offset, then divides. If the guest TSC is slower, it reads the same at several
 * host ticks; the inverse returns the first of them.
 */
#ifndef CLOCK_TSC_SCALING_H
#define CLOCK_TSC_SCALING_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/types.h"

enum { TSC_FRAC_BITS_VMX = 48, TSC_FRAC_BITS_SVM = 32 };

struct tsc_scaling {
	uint64_t ratio;
	uint32_t frac_bits; /* 0: no scaling, ratio is ignored */
	uint64_t offset;    /* two's complement if negative */
};

/* Returns true if frac_bits is below 64, and ratio not 0 with scaling. The functions below require
 * it. */
bool tsc_scaling_valid(const struct tsc_scaling *s);
struct guest_tsc tsc_scaling_to_guest(const struct tsc_scaling *s, struct host_tsc host);
/*
 * Computes the first host TSC at which the guest TSC has reached `guest`. While the guest TSC
 * reads exactly `guest`, the host TSC lies within [*first, *first + *span]. *span is 0 if the
 * guest TSC steps over `guest`. Returns false if the result exceeds 2^64.
 */
bool tsc_scaling_to_host(const struct tsc_scaling *s, struct guest_tsc guest,
			 struct host_tsc *first, uint64_t *span);

#endif
