/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/self_cost.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_usec * 1000;
}

void self_cost_read(struct self_cost *out)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long size, resident = 0;
	struct rusage usage = {0};

	getrusage(RUSAGE_SELF, &usage);
	out->cpu_time_ns = timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime);
	out->rss_bytes = 0;
	if (!f)
		return;
	if (fscanf(f, "%lu %lu", &size, &resident) == 2)
		out->rss_bytes = (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
	fclose(f);
}
