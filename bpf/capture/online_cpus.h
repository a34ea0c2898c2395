/* SPDX-License-Identifier: GPL-2.0-only */
/* The number of possible CPUs, and which CPUs are online. */
#ifndef CAPTURE_ONLINE_CPUS_H
#define CAPTURE_ONLINE_CPUS_H

#include <stdbool.h>
#include <stddef.h>

/* Sets online[cpu] for the first n CPUs. Returns how many of them are online, or -errno. */
int online_cpus_read(bool *online, size_t n);

/* Returns the number of possible CPUs, 1..VS_CPUS_MAX. If there are more, or if the number cannot
 * be read: -ENOTSUP, with the reason in why[0..why_bytes-1] (one line, without a newline). */
int possible_cpus_read(char *why, size_t why_bytes);

#endif
