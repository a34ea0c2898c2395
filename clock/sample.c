/* SPDX-License-Identifier: GPL-2.0-only */
#include "clock/sample.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

#include "clock/arch/counter.h"

enum {
	ATTEMPTS = 8,
	MEASURE_NS = 20 * 1000 * 1000,
	STATED_TOLERANCE_PPM = 2000,
	SHIFT_PLL = 2, /* include/linux/timex.h */
	ADJTIME_PPB = 500 * 1000,
};

uint64_t clock_tsc_read(void)
{
	return counter_read();
}

static uint64_t timespec_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

/*
 * kernel/time/ntp.c: the length of a tick is the tick parameter plus the frequency, plus at each
 * second 1/2^(SHIFT_PLL + constant) of the offset that is left, plus 500 us of what adjtime(3) has
 * left. The share applied in the present second belongs to the offset before it was taken off.
 */
static void ntp_state_read(struct clock_sample *out)
{
	struct timex now = {.modes = 0};
	struct timex adjtime_left = {.modes = ADJ_OFFSET_SS_READ};
	int64_t rate, offset_ns, slew;
	int shift;

	out->steady = false;
	out->rate_ppb = 0;
	out->slew_ppb = 0;
	if (adjtimex(&now) < 0 || adjtimex(&adjtime_left) < 0)
		return;
	rate = now.freq * 1000 / 65536 + (now.tick - 10000) * 100000;
	offset_ns = now.status & STA_NANO ? now.offset : now.offset * 1000;
	shift = SHIFT_PLL + (now.constant < 0 ? 0 : now.constant > 10 ? 10 : (int)now.constant);
	slew = llabs(rate) + llabs(offset_ns) / ((1 << shift) - 1);
	if (adjtime_left.offset)
		slew += ADJTIME_PPB;
	out->steady = !offset_ns && !adjtime_left.offset;
	out->rate_ppb = (int32_t)rate;
	out->slew_ppb = slew > UINT32_MAX ? UINT32_MAX : (uint32_t)slew;
}

int clock_sample_take(struct clock_sample *out)
{
	const int cpu = sched_getcpu();

	out->tsc_width = UINT64_MAX;
	for (int i = 0; i < ATTEMPTS; i++) {
		struct timespec monotonic, raw, realtime;
		uint64_t before = clock_tsc_read(), after;

		if (clock_gettime(CLOCK_MONOTONIC, &monotonic) ||
		    clock_gettime(CLOCK_MONOTONIC_RAW, &raw) ||
		    clock_gettime(CLOCK_REALTIME, &realtime))
			return -errno;
		after = clock_tsc_read();
		if (after < before || after - before >= out->tsc_width)
			continue;
		*out = (struct clock_sample){
			.tsc = before + (after - before) / 2,
			.tsc_width = after - before,
			.monotonic_ns = timespec_ns(&monotonic),
			.raw_ns = timespec_ns(&raw),
			.realtime_ns = timespec_ns(&realtime),
		};
	}
	if (out->tsc_width == UINT64_MAX)
		return -EIO;
	if (cpu >= 0 && sched_getcpu() == cpu)
		out->tsc_cpu = (uint32_t)cpu + 1;
	ntp_state_read(out);
	return 0;
}

uint64_t clock_suspended_ns(void)
{
	int64_t least = INT64_MAX, most = 0;

	for (int i = 0; i < ATTEMPTS; i++) {
		struct timespec before, boot, after;

		if (clock_gettime(CLOCK_MONOTONIC, &before) ||
		    clock_gettime(CLOCK_BOOTTIME, &boot) || clock_gettime(CLOCK_MONOTONIC, &after))
			return 0;
		if ((int64_t)(timespec_ns(&boot) - timespec_ns(&before)) < least)
			least = (int64_t)(timespec_ns(&boot) - timespec_ns(&before));
		if ((int64_t)(timespec_ns(&boot) - timespec_ns(&after)) > most)
			most = (int64_t)(timespec_ns(&boot) - timespec_ns(&after));
	}
	/* The truth lies between the two. */
	return least < 1000 ? 0 : (uint64_t)(most + (least - most) / 2);
}

int clock_tsc_hz(uint64_t *hz)
{
	const struct timespec pause = {.tv_nsec = MEASURE_NS};
	struct clock_sample first, last;
	uint64_t measured, said = counter_stated_hz();
	int r = clock_sample_take(&first);

	if (r)
		return r;
	/* A signal may cut the pause short: the samples say how long it was. */
	do {
		nanosleep(&pause, NULL);
		r = clock_sample_take(&last);
		if (r)
			return r;
	} while (last.raw_ns - first.raw_ns < MEASURE_NS);
	if (last.tsc <= first.tsc)
		return -EIO;
	measured = (uint64_t)((unsigned __int128)(last.tsc - first.tsc) * 1000000000u /
			      (last.raw_ns - first.raw_ns));
	/* A hypervisor may pass the leaf of another machine on: believe it within the tolerance. */
	if (said && llabs((int64_t)(said - measured)) <=
			    (int64_t)(measured / 1000000 * STATED_TOLERANCE_PPM))
		measured = said;
	*hz = measured;
	return 0;
}

uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_monotonic_ms(void)
{
	return clock_monotonic_ns() / 1000000;
}

int64_t clock_realtime_ns(void)
{
	return (int64_t)clock_read_ns(CLOCK_REALTIME);
}
