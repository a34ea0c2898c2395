/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Divides 128 by 64 bits. The quotient must fit in 64 bits.
 */
#ifndef CLOCK_DIVIDE_H
#define CLOCK_DIVIDE_H

#include <stdint.h>

#include "clock/arch/counter.h"

/* uint64_t divide_128_64(uint64_t high, uint64_t low, uint64_t divisor, uint64_t *rest), for each
 * architecture in clock/arch/: returns (high * 2^64 + low) / divisor and stores the remainder in
 * *rest. high must be below divisor. */

/*
 * Finds the integers q with n <= q * divisor / unit < n + 1, where n * unit = high * 2^64 + low.
 * Returns the first one; *span is the number of those that follow. unit: at most 2^63; divisor:
 * not 0; high: below divisor.
 */
static inline uint64_t divide_range(uint64_t high, uint64_t low, uint64_t divisor, uint64_t unit,
				    uint64_t *span)
{
	uint64_t rest, first = divide_128_64(high, low, divisor, &rest);
	uint64_t more = 0, gap;

	/* The first multiple of divisor at or above, and its distance. */
	gap = rest ? divisor - rest : 0;
	first += rest != 0;
	/* Multiples within the next `unit`: ceil((unit - gap) / divisor). */
	if (unit > gap)
		more = (unit - gap - 1) / divisor;
	*span = more;
	return first;
}

#endif
