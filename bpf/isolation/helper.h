/* SPDX-License-Identifier: GPL-2.0-only */
/* Starts the running program again as a helper process, which main() recognizes by argv[0]. */
#ifndef ISOLATION_HELPER_H
#define ISOLATION_HELPER_H

#include <spawn.h>
#include <stddef.h>
#include <sys/types.h>

enum { HELPER_FIRST = 3, HELPER_DESCRIPTORS_MAX = 8 };

/*
 * Starts /proc/self/exe with argv[0] `name` and an empty environment, in a process group of its
 * own: a Ctrl-C of the terminal reaches only the caller, which ends its helpers. The helper holds
 * /dev/null as descriptors 0 to 2, fds[0] as HELPER_FIRST, the others after it, and no other
 * descriptors. The caller keeps its descriptors. Stores the process id in *pid. Returns 0 or
 * -errno; -E2BIG: more than HELPER_DESCRIPTORS_MAX.
 */
int helper_spawn(const char *name, const int *fds, size_t n, pid_t *pid);
/* Makes a process that posix_spawn() starts begin with no signal blocked and none ignored. flags:
 * more POSIX_SPAWN_ flags. `attributes` is initialized and stays the caller's. Returns 0 or an
 * errno, which is positive as those of posix_spawn(). */
int helper_attributes_prepare(posix_spawnattr_t *attributes, short flags);

#endif
