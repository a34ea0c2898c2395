/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * 128 by 64 bit division where the quotient fits in 64 bits: one DIV instruction, which compilers
 * do not emit for it on their own (__udivti3 is a call and a few branches).
 */
#ifndef CLOCK_DIVIDE_H
#define CLOCK_DIVIDE_H

#include <stdint.h>

/* (high * 2^64 + low) / divisor. high must be below divisor. */
static inline uint64_t divide_128_64(uint64_t high, uint64_t low, uint64_t divisor, uint64_t *rest)
{
	uint64_t quotient;

	__asm__("divq %4" : "=a"(quotient), "=d"(*rest) : "a"(low), "d"(high), "r"(divisor) : "cc");
	return quotient;
}

/*
 * The integers q with n <= q * divisor / unit < n + 1, n * unit = high * 2^64 + low: the first, and
 * in *span how many follow it. unit is at most 2^63, divisor not 0. high must be below divisor.
 */
static inline uint64_t divide_range(uint64_t high, uint64_t low, uint64_t divisor, uint64_t unit,
				    uint64_t *span)
{
	uint64_t rest, first = divide_128_64(high, low, divisor, &rest);
	uint64_t more = 0, gap;

	/* Rounded up: the first multiple of divisor that is not below, and how far above it is. */
	gap = rest ? divisor - rest : 0;
	first += rest != 0;
	/* Multiples within the next `unit`: ceil((unit - gap) / divisor). */
	if (unit > gap)
		more = (unit - gap - 1) / divisor;
	*span = more;
	return first;
}

#endif
