/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One host capture for many users: attached once and filtered in the kernel. Each user gets a
 * struct capture (capture.h) with its own event numbers, totals and task names, as if it had opened
 * the capture itself. If the ring of a CPU loses events, it is unknown to which users they
 * belonged. Therefore the stream of each user contains the loss, with its time and its number of
 * events. struct capture_shared_stats counts the loss once.
 *
 * All functions must be called on one thread. A user's capture_clock_sample() reads the kernel's
 * rings for all users, unless they were read within the last 5 ms. Its capture_drain() delivers the
 * user's part of what was read.
 */
#ifndef BACKEND_CAPTURE_SHARED_H
#define BACKEND_CAPTURE_SHARED_H

#include "bpf/capture/capture.h"

struct capture_shared;

/* Opens the capture of a host as capture_open() does. Ignores `kind` and `sample_hz` of the
 * options. */
int capture_shared_open(const struct capture_options *options, struct capture_shared **out,
			char *why, size_t why_bytes);
/* Closes the capture. All users must have closed theirs before. `s` may be NULL. */
void capture_shared_close(struct capture_shared *s);

/* Adds a user and gives it a capture. wait_threshold_ns: the stacks of all waits of at least this
 * length are delivered; 0: 20 ms. capture_close() removes the user and stops following its threads.
 * The user's capture ignores the VM numbers that it is given: all its threads belong to one VM. Its
 * capture_add_thread() returns -EBUSY if the process belongs to another user. Returns 0, -ENOSPC:
 * 512 users, -ENOMEM or other -errno. */
int capture_shared_join(struct capture_shared *s, uint64_t wait_threshold_ns, struct capture **out);

/* Reads the rings, as above, and returns whether the user's next capture_drain() would deliver
 * nothing. false for a capture that is not shared. */
bool capture_shared_is_idle(struct capture *c);

/* Asks `find`, for each stack of this user as it is read, for the number by which the user knows
 * the stack; 0: unknown. A known stack is not copied: the sink receives the number in its place.
 * The stack is borrowed for the call. Does nothing for a capture that is not shared. */
void capture_shared_stacks_known(struct capture *c,
				 uint32_t (*find)(void *context, const struct capture_stack *stack),
				 void *context);

/* Reads the rings, as above, and keeps the clock sample for users that drain more rarely. Returns 0
 * or -errno. */
int capture_shared_pump(struct capture_shared *s);

struct capture_shared_stats {
	size_t users;
	/* Totals of the kernel, for all users. */
	uint64_t emitted, dropped_kernel;
	uint64_t missed; /* number of events lost without a sequence number, see capture_missed() */
	uint64_t unclaimed; /* events of removed users, and task names that no user needs yet */
};
/* Returns the statistics since the capture was opened. */
void capture_shared_stats_get(const struct capture_shared *s, struct capture_shared_stats *out);
/* Returns how many of the events that this user lost were lost by the kernel's rings; these may
 * have belonged to other users. 0 for a capture that is not shared. */
uint64_t capture_shared_lost(const struct capture *c);

#endif
