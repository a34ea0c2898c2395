/* SPDX-License-Identifier: GPL-2.0-only */
/* Starts this very program again as a helper process, which main() recognises by argv[0]. */
#ifndef ISOLATION_HELPER_H
#define ISOLATION_HELPER_H

#include <stddef.h>
#include <sys/types.h>

enum { HELPER_FIRST = 3, HELPER_DESCRIPTORS_MAX = 8 };

/*
 * Starts /proc/self/exe with argv[0] `name` and an empty environment, in a process group of its own
 * (a terminal's Ctrl-C is for us, who end our helpers). It holds /dev/null as 0 to 2, fds[0] as
 * HELPER_FIRST, fds[1] as the next and so on, and nothing else. The descriptors stay ours. 0 or
 * -errno.
 */
int helper_spawn(const char *name, const int *fds, size_t n, pid_t *pid);

#endif
