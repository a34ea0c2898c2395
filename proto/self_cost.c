/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/self_cost.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "proto/proc_file.h"

enum {
	RECENT_NS = 50000000,
	RECENT_RSS_NS = 1000000000, /* a file is read for it */
};

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_usec * 1000;
}

static uint64_t cpu_time_ns(void)
{
	struct rusage usage = {0};

	getrusage(RUSAGE_SELF, &usage);
	return timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime);
}

static uint64_t rss_bytes(void)
{
	unsigned long size, resident;
	char text[128];

	proc_file_line("/proc/self/statm", text, sizeof(text));
	if (sscanf(text, "%lu %lu", &size, &resident) != 2)
		return 0;
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void self_cost_read(struct self_cost *out)
{
	*out = (struct self_cost){.cpu_time_ns = cpu_time_ns(), .rss_bytes = rss_bytes()};
}

void self_cost_recent(struct self_cost *out)
{
	static _Thread_local struct self_cost last;
	static _Thread_local uint64_t cpu_read_ns, rss_read_ns;
	struct timespec t;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	if (!cpu_read_ns || now_ns - cpu_read_ns >= RECENT_NS) {
		last.cpu_time_ns = cpu_time_ns();
		cpu_read_ns = now_ns;
	}
	if (!rss_read_ns || now_ns - rss_read_ns >= RECENT_RSS_NS) {
		last.rss_bytes = rss_bytes();
		rss_read_ns = now_ns;
	}
	*out = last;
}
