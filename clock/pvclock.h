/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guest TSC <-> kvmclock, exact in integers, as the guest's own __pvclock_read_cycles() does it
 * (arch/x86/include/asm/pvclock.h and pvclock-abi.h):
 *
 *	d  = guest_tsc - tsc_timestamp
 *	d  = tsc_shift < 0 ? d >> -tsc_shift : d << tsc_shift
 *	ns = system_time + ((d * tsc_to_system_mul) >> 32)
 *
 * Before tsc_timestamp, where a guest never reads, the same line is continued, rounded down.
 */
#ifndef CLOCK_PVCLOCK_H
#define CLOCK_PVCLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/types.h"

enum {
	PVCLOCK_TSC_STABLE = 1, /* flags: the master clock, one line for all vCPUs */
	PVCLOCK_PAUSED = 2,     /* sticky until the guest clears it; says nothing of the present */
};

struct pvclock {
	uint64_t tsc_timestamp;
	uint64_t system_time;
	uint32_t mul;
	int8_t shift;
	uint8_t flags;
};

/* mul not 0, shift within -31..31. The functions below require it. */
bool pvclock_valid(const struct pvclock *p);
/* The same line (all but the flags), so that nothing changes for who reads the clock. */
bool pvclock_same_line(const struct pvclock *a, const struct pvclock *b);
struct kvmclock_ns pvclock_from_tsc(const struct pvclock *p, struct guest_tsc tsc);
/*
 * The first guest TSC at which kvmclock has reached `t`; it reads exactly `t` until
 * *first + *span. *span is 0 for a value that kvmclock steps over (a TSC slower than 1 GHz).
 * false if that is more than 2^63 ticks from tsc_timestamp.
 */
bool pvclock_to_tsc(const struct pvclock *p, struct kvmclock_ns t, struct guest_tsc *first,
		    uint64_t *span);

#endif
