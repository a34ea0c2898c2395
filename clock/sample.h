/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bracketed samples of this machine's clocks, and the conversion of capture stamps
 * (CLOCK_MONOTONIC, which NTP slews) to TSC ticks by interpolation between the samples taken
 * before and after a drain. Used alike by agent and collector.
 */
#ifndef CLOCK_SAMPLE_H
#define CLOCK_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

struct clock_sample {
	uint64_t tsc;       /* midpoint of the tightest bracket of a few attempts */
	uint64_t tsc_width; /* ticks between the two TSC reads of that bracket */
	uint64_t monotonic_ns;
	uint64_t raw_ns;
	uint64_t realtime_ns;
	/*
	 * What the kernel does to CLOCK_MONOTONIC's rate, from adjtimex(2); all zero where unknown.
	 * rate_ppb is the declared rate against CLOCK_MONOTONIC_RAW; steady: and nothing else is
	 * being slewed out on top of it. slew_ppb bounds what may be in effect altogether, either
	 * way.
	 */
	bool steady;
	int32_t rate_ppb;
	uint32_t slew_ppb;
};

/* Reads all clocks between two TSC reads, a few times, and keeps the tightest. 0 or -errno. */
int clock_sample_take(struct clock_sample *out);

/* CLOCK_BOOTTIME less CLOCK_MONOTONIC: how long this machine was suspended since its boot. 0 where
 * that is less than the two can be told apart by reading them (1 us). */
uint64_t clock_suspended_ns(void);

/* rdtsc, ordered after earlier loads. */
uint64_t clock_tsc_read(void);

/* Ticks per second of this machine's TSC: from CPUID leaf 0x15/0x40000010 where given, else
 * measured against CLOCK_MONOTONIC_RAW (takes 20 ms). 0 or -errno. */
int clock_tsc_hz(uint64_t *hz);
/* CLOCK_MONOTONIC now, ns. */
uint64_t clock_monotonic_ns(void);

/* Maps CLOCK_MONOTONIC stamps to TSC within the span of the samples pushed so far. */
struct capture_clock {
	struct clock_sample before, after;
	uint64_t n_samples;
	struct clock_sample pushed; /* where what rates are learned from began */
	bool pushed_jump;           /* a span since has a jump */
	double ticks_per_raw_ns;    /* of the newest past span without a jump; 0 before the first */
	double jumped_rate;         /* of the newest past span, if it has one; else 0 */
	double jump_ticks; /* how far the TSC ran on while the clocks stood still in this */
};
/* Knows no sample yet. Owns nothing. */
void capture_clock_init(struct capture_clock *c);
/* A newer sample: the span becomes [last after, sample]. */
void capture_clock_push(struct capture_clock *c, const struct clock_sample *sample);
/* The same, but too soon to learn anything of rates from. */
void capture_clock_extend(struct capture_clock *c, const struct clock_sample *sample);
/*
 * The TSC at capture stamp `monotonic_ns`. Within the span *err_ticks bounds the error: half the
 * wider bracket, the rounding, and the deviation from the chord that a change of rate within the
 * span admits. The rate is taken to stay within 500 ppm of CLOCK_MONOTONIC_RAW, or within what
 * either sample says is being slewed if that is more; where both samples declare the same steady
 * rate, a deviation is bounded by what is missing between that rate and the chord instead (one
 * excursion of the rate within a span; docs/clocks.md). A VMM that pauses the guest stops its
 * clocks but not its TSC: in a span that holds such a jump the bound holds the jump. Outside the
 * span the error grows with the distance. Before the second sample there is no rate: *err_ticks is
 * UINT64_MAX.
 */
uint64_t capture_clock_to_tsc(const struct capture_clock *c, uint64_t monotonic_ns,
			      uint64_t *err_ticks);

#endif
