/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One host capture for many users: attached once, filtered in the kernel, and each user gets a
 * struct capture that behaves as one of its own (capture.h), with event numbers, totals and tasks'
 * names of its own. What one CPU's ring lost before anybody knew whose it was is in every user's
 * stream, with its time and number: any of it may have been theirs. It is counted once here.
 *
 * All on one thread. Whoever drains first empties the kernel's rings for all.
 */
#ifndef BACKEND_CAPTURE_SHARED_H
#define BACKEND_CAPTURE_SHARED_H

#include "bpf/capture/capture.h"

struct capture_shared;

/* As capture_open(), of a host; `kind` and `sample_hz` of the options are ignored. Nothing is
 * attached once it is closed. */
int capture_shared_open(const struct capture_options *options, struct capture_shared **out,
			char *why, size_t why_bytes);
/* Only when all users have closed theirs. NULL is allowed. */
void capture_shared_close(struct capture_shared *s);

/* One more user, whose threads' waits longer than this bring stacks; 0: 20 ms. capture_close()
 * ends it: its threads are no longer followed. Its VM numbers do not matter: all its threads are
 * of one. capture_add_thread() also says -EBUSY: the process is another user's. 0, -ENOSPC (64
 * users), -ENOMEM or -errno. */
int capture_shared_join(struct capture_shared *s, uint64_t wait_threshold_ns, struct capture **out);

struct capture_shared_stats {
	size_t users;
	/* The kernel's totals; dropped: of whomever. */
	uint64_t emitted, dropped_kernel;
	uint64_t missed;    /* in neither, see capture_missed() */
	uint64_t unclaimed; /* of threads whose user had left meanwhile, or of tasks' names */
};
/* Since it was opened. */
void capture_shared_stats_get(const struct capture_shared *s, struct capture_shared_stats *out);
/* Of what a user lost: what the rings lost, of whomever. Zero for other captures. */
uint64_t capture_shared_lost(const struct capture *c);

#endif
