/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shows on the terminal how far long work has come: one line on standard error that is rewritten
 * and finally erased. Nothing is shown if standard error is not a terminal, or within the first
 * second.
 */
#ifndef UTIL_PROGRESS_H
#define UTIL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *name, *what; /* borrowed */
	uint64_t total;
	uint64_t shown_ns; /* when it was shown last, CLOCK_MONOTONIC */
	unsigned calls;
	bool terminal, shown;
};

/* Begins work on `name`; `what` says in a few words what is done, such as "reads the events".
 * total: the amount of work, in any unit; 0: unknown. */
void progress_begin(struct progress *p, const char *name, const char *what, uint64_t total);
/* Reports that `done` of the total are done. Costs a few nanoseconds; call it often. */
void progress_step(struct progress *p, uint64_t done);
/* Erases the line. */
void progress_end(struct progress *p);

#endif
