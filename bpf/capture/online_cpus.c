/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/online_cpus.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "bpf/prog/ring.h"

/* The file is a list like "0-3,8". */
int online_cpus_read(bool *online, size_t n)
{
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	unsigned int first, last;
	int count = 0;

	if (!f)
		return -errno;
	memset(online, 0, n * sizeof(*online));
	while (fscanf(f, "%u", &first) == 1) {
		if (fscanf(f, "-%u", &last) != 1)
			last = first;
		for (unsigned int cpu = first; cpu <= last && cpu < n; cpu++) {
			count += !online[cpu];
			online[cpu] = true;
		}
		if (fgetc(f) != ',')
			break;
	}
	fclose(f);
	return count ? count : -ENODATA;
}

int possible_cpus_read(char *why, size_t why_bytes)
{
	const int possible = libbpf_num_possible_cpus();

	if (possible > 0 && possible <= VS_CPUS_MAX)
		return possible;
	snprintf(why, why_bytes, "%d possible CPUs, at most %d are supported", possible,
		 VS_CPUS_MAX);
	return -ENOTSUP;
}
