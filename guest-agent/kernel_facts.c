// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/kernel_facts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/proc_file.h"

/* kernel/watchdog.c: a soft lockup is twice the threshold. */
uint32_t kernel_watchdog_s(void)
{
	char on[16], threshold[16];

	proc_file_line("/proc/sys/kernel/soft_watchdog", on, sizeof(on));
	proc_file_line("/proc/sys/kernel/watchdog_thresh", threshold, sizeof(threshold));
	return strcmp(on, "1") == 0 ? 2 * (uint32_t)strtoul(threshold, NULL, 10) : 0;
}

/* The coarse clock moves once per tick. */
uint32_t kernel_tick_hz(void)
{
	struct timespec resolution;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) < 0 || resolution.tv_sec ||
	    resolution.tv_nsec < 100000)
		return 0;
	return (uint32_t)((1000000000 + resolution.tv_nsec / 2) / resolution.tv_nsec);
}
