/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clocks that a kernel derives from a cycle counter by a multiplier and a shift, exact in integers:
 *
 *	ns = ns0 + (((cycles - cycles0) * mult) >> shift)
 *
 * CLOCK_MONOTONIC_RAW (kernel/time/timekeeping.c, with the clocksource's own mult and shift) and
 * perf's clock (time_zero, time_mult and time_shift of the mmap page, include/uapi/linux/
 * perf_event.h; its form with quot and rem is the same number, without the overflow).
 */
#ifndef CLOCK_CYCLE_CLOCK_H
#define CLOCK_CYCLE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/types.h"

struct cycle_clock {
	uint64_t cycles0, ns0;
	uint32_t mult;  /* not 0 */
	uint32_t shift; /* below 64 */
};

/* Is there a clock at all (a rate), with a shift that can be computed with? */
bool cycle_clock_valid(const struct cycle_clock *c);
/* Before cycles0 the same line, rounded down. */
uint64_t cycle_clock_ns(const struct cycle_clock *c, uint64_t cycles);
/* The first cycle at which the clock has reached `ns`; it reads exactly that until *first + *span.
 * false if that is more than 2^63 cycles from cycles0. */
bool cycle_clock_cycles(const struct cycle_clock *c, uint64_t ns, uint64_t *first, uint64_t *span);

/* What a perf mmap page says of its clock (perf_event_mmap_page, read under its seqlock). */
struct perf_page_clock {
	bool user_time_zero;  /* cap_user_time_zero */
	bool user_time_short; /* cap_user_time_short: the counter is narrower than 64 bits */
	uint64_t time_zero;
	uint32_t time_mult;
	uint16_t time_shift;
	uint64_t time_cycles, time_mask; /* with user_time_short */
};

/* false without cap_user_time_zero: the host's sched_clock is not its TSC (a kvmclock, say). */
bool perf_page_ns(const struct perf_page_clock *page, struct host_tsc tsc, struct perf_ns *out);
bool perf_page_tsc(const struct perf_page_clock *page, struct perf_ns t, struct host_tsc *first,
		   uint64_t *span);

/*
 * The multiplier and shift that turn `from_hz` cycles into units of `to_hz` without overflow for
 * `seconds`: clocks_calc_mult_shift() of kernel/time/clocksource.c, to the bit. The TSC clocksource
 * uses (tsc_khz, 1000000, 600000).
 */
void clock_mult_shift(uint32_t from_hz, uint32_t to_hz, uint32_t seconds, uint32_t *mult,
		      uint32_t *shift);

#endif
