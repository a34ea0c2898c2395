/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the benchmarks of the captures: a load of two processes that pass a byte to and fro,
 * and a measure of its CPU time. */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

/* Returns the CPU time of this process. This time includes the BPF programs that run in this
 * process. It excludes the time in which other tasks have the CPU. */
static inline uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Runs side 0 or 1 of `round_trips` round trips over two pipes. Each causes two context switches if
 * both sides run on the same CPU. Returns false if a pipe broke. */
static inline bool pass_bytes(int side, int round_trips, const int to[2], const int back[2])
{
	char byte = 0;

	for (int i = 0; i < round_trips; i++) {
		if (side == 0 && write(to[1], &byte, 1) != 1)
			return false;
		if (read(side ? to[0] : back[0], &byte, 1) != 1)
			return false;
		if (side == 1 && write(back[1], &byte, 1) != 1)
			return false;
	}
	return true;
}

#endif
