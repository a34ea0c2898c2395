/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/self_cost.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "proto/proc_file.h"

enum { RECENT_NS = 50000000 };

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_usec * 1000;
}

void self_cost_read(struct self_cost *out)
{
	unsigned long size, resident;
	struct rusage usage = {0};
	char text[128];

	getrusage(RUSAGE_SELF, &usage);
	out->cpu_time_ns = timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime);
	out->rss_bytes = 0;
	proc_file_line("/proc/self/statm", text, sizeof(text));
	if (sscanf(text, "%lu %lu", &size, &resident) == 2)
		out->rss_bytes = (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void self_cost_recent(struct self_cost *out)
{
	static _Thread_local struct self_cost last;
	static _Thread_local uint64_t read_ns;
	struct timespec t;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	if (!read_ns || now_ns - read_ns >= RECENT_NS) {
		self_cost_read(&last);
		read_ns = now_ns;
	}
	*out = last;
}
