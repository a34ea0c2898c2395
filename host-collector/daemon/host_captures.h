/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host captures that the daemon's VMs share, one for each backend that their configurations
 * name, and the names of stack addresses, the origins of tasks and the maker of frames. Each is
 * created for the first VM that needs it and freed by host_captures_tidy() when no VM uses it.
 */
#ifndef DAEMON_HOST_CAPTURES_H
#define DAEMON_HOST_CAPTURES_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/backend/capture_shared.h"

struct host_captures;
struct stack_names;
struct task_origins;
struct frame_maker;

struct host_captures *host_captures_new(void); /* NULL: no memory */
/* Frees everything. No VM may run. NULL is allowed. */
void host_captures_free(struct host_captures *h);
/* Returns the capture with this backend, which it starts if necessary; or NULL with -errno in *err
 * and one line in `why`. */
struct capture_shared *host_captures_get(struct host_captures *h, enum backend_choice backend,
					 int *err, char *why, size_t why_bytes);
/* Returns the names for the stacks of all streams, or NULL if there is no memory. Borrowed. */
struct stack_names *host_captures_names(struct host_captures *h);
/* Returns the origins of tasks for all streams, or NULL if there is no memory. Borrowed. */
struct task_origins *host_captures_origins(struct host_captures *h);
/* Returns the maker of the frames of all streams, or NULL if there is no memory. Borrowed. */
struct frame_maker *host_captures_maker(struct host_captures *h);
/* Returns the frequency of the host's TSC in Hz, measured at the first call (20 ms), or 0 if it
 * cannot be measured. */
uint64_t host_captures_tsc_hz(struct host_captures *h);
/* Reads the rings of all captures (capture_shared_pump). Returns whether there were events since
 * the last call. */
bool host_captures_pump(struct host_captures *h);
/* Frees what no VM uses. Call it regularly. */
void host_captures_tidy(struct host_captures *h);
/* Stores the sums over all captures in `out` and returns the number of captures. */
size_t host_captures_stats(const struct host_captures *h, struct capture_shared_stats *out);

#endif
