/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints "BEGIN DURATION" (ns, CLOCK_MONOTONIC_RAW) for every gap in which a CPU ran no task at
 * all. It wakes every few milliseconds, with a higher priority than every other task. So only the
 * machine under an emulated host can delay it. If a test fails during such a gap, the machine may
 * be the cause.
 *
 *   gap-meter CPU MIN_MS
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { PERIOD_NS = 20 * 1000 * 1000, PRIORITY = 90 };

static uint64_t raw_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	struct sched_param param = {.sched_priority = PRIORITY};
	uint64_t last, now, min_ns;
	cpu_set_t cpus;

	if (argc != 3) {
		fprintf(stderr, "usage: gap-meter CPU MIN_MS\n");
		return 2;
	}
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[1]), &cpus);
	min_ns = (uint64_t)atoi(argv[2]) * 1000000 + PERIOD_NS;
	if (sched_setaffinity(0, sizeof(cpus), &cpus) || mlockall(MCL_CURRENT) ||
	    sched_setscheduler(0, SCHED_FIFO, &param)) {
		perror("gap-meter");
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (last = raw_ns();; last = now) {
		nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS}, NULL);
		now = raw_ns();
		if (now - last >= min_ns)
			printf("%lu %lu\n", last, now - last - PERIOD_NS);
	}
}
