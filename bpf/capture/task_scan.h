/* SPDX-License-Identifier: GPL-2.0-only */
/* The tasks that exist now, from /proc. */
#ifndef CAPTURE_TASK_SCAN_H
#define CAPTURE_TASK_SCAN_H

#include <sys/types.h>

/* Calls `task` for every thread of every process; comm is padded with zeros. About 10 us for each.
 * One that ends meanwhile is left out. 0 or -errno. */
int task_scan(void (*task)(void *context, pid_t tid, pid_t tgid, const char comm[16]),
	      void *context);

#endif
