/* SPDX-License-Identifier: GPL-2.0-only */
/* Lists the existing tasks from /proc. */
#ifndef CAPTURE_TASK_SCAN_H
#define CAPTURE_TASK_SCAN_H

#include <sys/types.h>

/* Calls `task` for every thread of every process, which takes about 10 us each. comm is padded with
 * zeros. Skips a thread that ends meanwhile. Returns 0 or -errno. */
int task_scan(void (*task)(void *context, pid_t tid, pid_t tgid, const char comm[16]),
	      void *context);

#endif
