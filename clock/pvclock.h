/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Converts between guest TSC and kvmclock with the integer arithmetic of the guest's own
 * __pvclock_read_cycles() (arch/x86/include/asm/pvclock.h and pvclock-abi.h):
 *
 *	d  = guest_tsc - tsc_timestamp
 *	d  = tsc_shift < 0 ? d >> -tsc_shift : d << tsc_shift
 *	ns = system_time + ((d * tsc_to_system_mul) >> 32)
 *
 * Before tsc_timestamp, where a guest never reads, the line continues, rounded down.
 */
#ifndef CLOCK_PVCLOCK_H
#define CLOCK_PVCLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/types.h"

enum {
	PVCLOCK_TSC_STABLE = 1, /* flag: the master clock is on, one kvmclock line for all vCPUs */
	PVCLOCK_PAUSED = 2,     /* flag: set by a pause, until the guest clears it */
};

struct pvclock {
	uint64_t tsc_timestamp;
	uint64_t system_time;
	uint32_t mul;
	int8_t shift;
	uint8_t flags;
};

/* Returns true if mul is not 0 and shift is within -31..31. The functions below require it. */
bool pvclock_valid(const struct pvclock *p);
/* Returns true if a and b are the same kvmclock line. The flags may differ. */
bool pvclock_same_line(const struct pvclock *a, const struct pvclock *b);
struct kvmclock_ns pvclock_from_tsc(const struct pvclock *p, struct guest_tsc tsc);
/*
 * Computes the first guest TSC at which kvmclock has reached `t`. kvmclock reads exactly `t` until
 * *first + *span. *span is 0 if kvmclock steps over `t` (a TSC below 1 GHz). Returns false if
 * *first is more than 2^63 ticks from tsc_timestamp.
 */
bool pvclock_to_tsc(const struct pvclock *p, struct kvmclock_ns t, struct guest_tsc *first,
		    uint64_t *span);

#endif
