/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host's captures that the daemon's VMs share: one for each way to capture that a VM asks for,
 * which is one. Attached when the first VM runs, gone when none does. So with the names of stacks.
 */
#ifndef DAEMON_HOST_CAPTURES_H
#define DAEMON_HOST_CAPTURES_H

#include <stddef.h>

#include "bpf/backend/capture_shared.h"

struct host_captures;
struct stack_names;
struct task_origins;

struct host_captures *host_captures_new(void); /* NULL on ENOMEM */
/* When no VM runs. NULL is allowed. */
void host_captures_free(struct host_captures *h);
/* The capture of this way; attaches it if need be. NULL: *err says why, and `why` in a line. */
struct capture_shared *host_captures_get(struct host_captures *h, enum capture_way way, int *err,
					 char *why, size_t why_bytes);
/* For the stacks of all streams; NULL on ENOMEM. Borrowed. */
struct stack_names *host_captures_names(struct host_captures *h);
/* Where tasks come from, for all streams; NULL on ENOMEM. Borrowed. */
struct task_origins *host_captures_origins(struct host_captures *h);
/* Of this machine, measured once (20 ms); 0: it cannot be. */
uint64_t host_captures_tsc_hz(struct host_captures *h);
/* Call it now and then: ends captures that nobody uses. */
void host_captures_tidy(struct host_captures *h);
/* Sums over all; how many there are. */
size_t host_captures_stats(const struct host_captures *h, struct capture_shared_stats *out);

#endif
