/* SPDX-License-Identifier: GPL-2.0-only */
/* How many CPUs there can be, and which are online now. */
#ifndef CAPTURE_ONLINE_CPUS_H
#define CAPTURE_ONLINE_CPUS_H

#include <stdbool.h>
#include <stddef.h>

/* Sets online[cpu] for the first n CPUs. Returns how many are online, or -errno. */
int online_cpus_read(bool *online, size_t n);

/*
 * How many CPUs this machine can have, 1..VS_CPUS_MAX. -ENOTSUP with the reason, a line without its
 * end, in why[0..why_bytes-1] where they are more or the kernel does not tell.
 */
int possible_cpus_read(char *why, size_t why_bytes);

#endif
