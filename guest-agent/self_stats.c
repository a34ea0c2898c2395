// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/self_stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_usec * 1000;
}

int self_stats_read(struct self_stats *out)
{
	unsigned long size, resident;
	struct rusage usage;
	char text[128];
	ssize_t n;
	int fd;

	if (getrusage(RUSAGE_SELF, &usage) < 0)
		return -errno;
	fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -EIO;
	text[n] = '\0';
	if (sscanf(text, "%lu %lu", &size, &resident) != 2)
		return -EIO;
	out->cpu_time_ns = timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime);
	out->rss_bytes = (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}
