// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints lines "TSC_BEFORE MONOTONIC_NS TSC_AFTER": the guest's CLOCK_MONOTONIC, which its kernel
 * computes from kvmclock, between two TSC reads.
 *
 *   clock-probe SAMPLES PERIOD_MS
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

static uint64_t tsc_read(void)
{
	uint64_t tsc;

	_mm_lfence();
	tsc = __rdtsc();
	_mm_lfence();
	return tsc;
}

int main(int argc, char **argv)
{
	long samples = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	long period_ms = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	const struct timespec period = {period_ms / 1000, period_ms % 1000 * 1000000};

	for (long i = 0; i < samples; i++) {
		struct timespec now;
		uint64_t before = tsc_read(), after;

		clock_gettime(CLOCK_MONOTONIC, &now);
		after = tsc_read();
		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", before,
		       (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, after);
		nanosleep(&period, NULL);
	}
	return samples <= 0;
}
