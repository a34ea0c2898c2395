/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clocks that a kernel derives from a cycle counter with a multiplier and a shift. Integer
 * arithmetic, exact:
 *
 *	ns = ns0 + (((cycles - cycles0) * mult) >> shift)
 *
 * Such clocks are CLOCK_MONOTONIC_RAW (kernel/time/timekeeping.c, with mult and shift of the
 * clocksource) and perf's clock (time_zero, time_mult and time_shift of the mmap page,
 * include/uapi/linux/perf_event.h; the formula there with quot and rem gives the same result and
 * avoids an overflow).
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

/* Returns true if mult and shift are in range. The functions below require it. */
bool cycle_clock_valid(const struct cycle_clock *c);
/* Converts cycles to ns, rounded down. Continues the line before cycles0. */
uint64_t cycle_clock_ns(const struct cycle_clock *c, uint64_t cycles);
/* Computes the first cycle at which the clock has reached `ns`. The clock reads exactly `ns` until
 * *first + *span. Returns false if *first is more than 2^63 cycles from cycles0. */
bool cycle_clock_cycles(const struct cycle_clock *c, uint64_t ns, uint64_t *first, uint64_t *span);

/* Clock parameters of a perf mmap page (perf_event_mmap_page), read under its seqlock. */
struct perf_page_clock {
	bool user_time_zero;  /* cap_user_time_zero */
	bool user_time_short; /* cap_user_time_short: the counter has less than 64 bits */
	uint64_t time_zero;
	uint32_t time_mult;
	uint16_t time_shift;
	uint64_t time_cycles, time_mask; /* valid with user_time_short */
};

/* Convert between TSC and perf's clock, like the functions above. Return false without
 * cap_user_time_zero: the host's sched_clock does not come from its TSC, but for example from
 * kvmclock. */
bool perf_page_ns(const struct perf_page_clock *page, struct host_tsc tsc, struct perf_ns *out);
bool perf_page_tsc(const struct perf_page_clock *page, struct perf_ns t, struct host_tsc *first,
		   uint64_t *span);

/*
 * Computes the multiplier and the shift that convert `from_hz` cycles to units of `to_hz` and do
 * not overflow for `seconds`. Gives the same result as clocks_calc_mult_shift() in
 * kernel/time/clocksource.c. The TSC clocksource uses (tsc_khz, 1000000, 600000).
 */
void clock_mult_shift(uint32_t from_hz, uint32_t to_hz, uint32_t seconds, uint32_t *mult,
		      uint32_t *shift);

#endif
