// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program with USDT probes, which Debian's QEMU does not have. It sleeps COUNT times, each time a
 * little longer, between the probes sleeper:begin and sleeper:end. The argument of the probes is
 * the number of the sleep. Prints the length of each sleep by CLOCK_MONOTONIC_RAW, in ns.
 *
 *   usdt-sleeper COUNT
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/unit/usdt_probe.h"

enum { SLEEPS_MAX = 1000, SLEEP_NS = 2000000, STEP_NS = 100000 };

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	const long count = argc > 1 ? atol(argv[1]) : 0;
	static uint64_t took_ns[SLEEPS_MAX];

	if (count < 1 || count > SLEEPS_MAX) {
		fprintf(stderr, "usage: usdt-sleeper COUNT (1 to %d)\n", SLEEPS_MAX);
		return 2;
	}
	for (long i = 0; i < count; i++) {
		const struct timespec pause = {.tv_nsec = SLEEP_NS + i * STEP_NS};
		uint64_t begin_ns;

		USDT_PROBE("sleeper", "begin", "8@%0", "r"(i));
		begin_ns = now_ns();
		nanosleep(&pause, NULL);
		took_ns[i] = now_ns() - begin_ns;
		USDT_PROBE("sleeper", "end", "8@%0", "r"(i));
	}
	for (long i = 0; i < count; i++)
		printf("%llu\n", (unsigned long long)took_ns[i]);
	return 0;
}
