/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CLOCK_ARCH_COUNTER_ARM64_H
#define CLOCK_ARCH_COUNTER_ARM64_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t counter_read(void)
{
	uint64_t ticks;

	/* As the kernel's arch_timer_read_cntvct_el0(): the read may otherwise run ahead. */
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
	return ticks;
}

static inline uint64_t counter_stated_hz(void)
{
	uint64_t hz;

	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz;
}

/* PV_TIME_ST is a hypercall, which a process cannot make: the steal clock counts as absent. */
static inline bool counter_steal_clock_present(void)
{
	return false;
}

static inline uint64_t divide_128_64(uint64_t high, uint64_t low, uint64_t divisor, uint64_t *rest)
{
	const unsigned __int128 dividend = (unsigned __int128)high << 64 | low;

	*rest = (uint64_t)(dividend % divisor);
	return (uint64_t)(dividend / divisor);
}

#endif
