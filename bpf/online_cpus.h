/* SPDX-License-Identifier: GPL-2.0-only */
/* Which CPUs are online now. */
#ifndef BPF_ONLINE_CPUS_H
#define BPF_ONLINE_CPUS_H

#include <stdbool.h>
#include <stddef.h>

/* Sets online[cpu] for the first n CPUs. Returns how many are online, or -errno. */
int online_cpus_read(bool *online, size_t n);

#endif
