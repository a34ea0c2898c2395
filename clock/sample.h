/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clock samples, and the conversion of the capture's stamps to TSC. A clock sample reads this
 * machine's clocks between two reads of the TSC (a bracket). The capture stamps events with
 * CLOCK_MONOTONIC, which NTP slews; the conversion interpolates between the samples before and
 * after a drain. Agent and collector both use this.
 */
#ifndef CLOCK_SAMPLE_H
#define CLOCK_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct clock_sample {
	uint64_t tsc;       /* midpoint of the narrowest bracket of some attempts */
	uint64_t tsc_width; /* width of that bracket, ticks */
	uint64_t monotonic_ns;
	uint64_t raw_ns;
	uint64_t realtime_ns;
	uint32_t tsc_cpu; /* 1 + the CPU on which the clocks were read; 0: unknown */
	/*
	 * How the kernel adjusts the rate of CLOCK_MONOTONIC, from adjtimex(2); all zeros if
	 * unknown. rate_ppb: the declared rate relative to CLOCK_MONOTONIC_RAW. steady: no offset
	 * is being slewed in addition. slew_ppb: limit of the total adjustment in either
	 * direction.
	 */
	bool steady;
	int32_t rate_ppb;
	uint32_t slew_ppb;
};

/* Reads all clocks between two TSC reads several times and keeps the narrowest bracket. Returns 0
 * or -errno. */
int clock_sample_take(struct clock_sample *out);

/* Returns CLOCK_BOOTTIME less CLOCK_MONOTONIC, ns: the time that this machine was suspended since
 * its boot. Returns 0 below 1 us, because reading the two clocks cannot distinguish such a value
 * from 0. */
uint64_t clock_suspended_ns(void);

/* Reads the TSC after all earlier loads. */
uint64_t clock_tsc_read(void);

/* Determines the TSC frequency of this machine by a measurement against CLOCK_MONOTONIC_RAW (20
 * ms). Uses the value of CPUID leaf 0x40000010 or 0x15 instead if it agrees within 2000 ppm.
 * Returns 0 or -errno. */
int clock_tsc_hz(uint64_t *hz);
/* Reads a clock of clock_gettime(), ns. */
uint64_t clock_read_ns(clockid_t clock);
/* Reads CLOCK_MONOTONIC, ns or ms. */
uint64_t clock_monotonic_ns(void);
uint64_t clock_monotonic_ms(void);
/* Reads CLOCK_REALTIME, ns since 1970. */
int64_t clock_realtime_ns(void);

/* Converts CLOCK_MONOTONIC to TSC within the span between two clock samples. */
struct capture_clock {
	struct clock_sample before, after;
	uint64_t n_samples;
	struct clock_sample pushed; /* begin of the interval from which the next rate is learned */
	bool pushed_jump;           /* a span since then contains a jump */
	double ticks_per_raw_ns;    /* of the newest interval without a jump; 0: none yet */
	double jumped_rate;         /* of the newest interval if it contains a jump; else 0 */
	double jump_ticks;          /* advance of the TSC during the jump of this span */
};
/* Initialises a clock without samples. It owns no memory. */
void capture_clock_init(struct capture_clock *c);
/* Adds a sample. The span is then [previous sample, this sample]. */
void capture_clock_push(struct capture_clock *c, const struct clock_sample *sample);
/* Like capture_clock_push(), but does not learn a rate: the sample follows too soon. */
void capture_clock_extend(struct capture_clock *c, const struct clock_sample *sample);
/*
 * Returns the TSC at `monotonic_ns`. Within the span, *err_ticks bounds the error: half the wider
 * bracket, the rounding, and the deviation from the chord that a change of rate within the span
 * allows. The rate is assumed to be within 500 ppm of CLOCK_MONOTONIC_RAW, or within the slew of
 * either sample if that is larger. If both samples declare the same steady rate, the difference
 * between that rate and the chord bounds the deviation instead; this assumes one excursion of the
 * rate per span (docs/clocks.md).
 *
 * A VMM that pauses the guest stops its clocks but not its TSC: if the span contains such a jump,
 * the bound includes it. Outside the span the bound grows with the distance. Before the second
 * sample there is no rate, and *err_ticks is UINT64_MAX.
 */
uint64_t capture_clock_to_tsc(const struct capture_clock *c, uint64_t monotonic_ns,
			      uint64_t *err_ticks);

enum { CLOCK_CHORD_FRACTION = 31 };

/* Converts many stamps of one span without their bounds: a multiplication instead of the divisions
 * of capture_clock_to_tsc(). */
struct clock_chord {
	uint64_t begin_ns, begin_tsc;
	uint64_t ns, ticks; /* length of the span */
	uint64_t ratio;     /* ticks / ns * 2^CLOCK_CHORD_FRACTION, rounded down */
};
/* Prepares the chord of the clock's span. Returns false if the span contains a jump, if it is
 * longer than 2 s, or before the second sample: the chord then has no stamps. */
bool clock_chord_init(struct clock_chord *chord, const struct capture_clock *c);

/* Returns true if the chord can convert this stamp: it lies in the span, before its end. */
static inline bool clock_chord_has(const struct clock_chord *chord, uint64_t monotonic_ns)
{
	return monotonic_ns - chord->begin_ns < chord->ns;
}

/* Returns what capture_clock_to_tsc() returns. Only for stamps that the chord has. */
static inline uint64_t clock_chord_tsc(const struct clock_chord *chord, uint64_t monotonic_ns)
{
	const uint64_t from = monotonic_ns - chord->begin_ns;
	const uint64_t ticks = from * chord->ratio >> CLOCK_CHORD_FRACTION;
	const uint64_t rest = from * chord->ticks - ticks * chord->ns;

	/* `from` is below 2^31, so the rounding of the ratio costs less than one tick. */
	return chord->begin_tsc + ticks + (rest >= chord->ns);
}

/* Returns how far the stamp is from the nearer end of the span, ns. The bound of the error grows
 * with it: of the stamps of a chord, the one with the greatest distance has the greatest bound. */
static inline uint64_t clock_chord_depth(const struct clock_chord *chord, uint64_t monotonic_ns)
{
	const uint64_t from = monotonic_ns - chord->begin_ns;

	return from < chord->ns - from ? from : chord->ns - from;
}

#endif
