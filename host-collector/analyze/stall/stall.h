/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stall detector: observes the model and reports the facts of every interval of at least
 * `than_ns` in which a guest CPU
 *   - ran one task without a sched_switch,
 *   - ran one interrupt handler or softirq, or
 *   - was kept from running by the host while it idled, or while its agent was silent;
 * and of storms of shorter waits (stall_storm.c), lost interrupts and steps of the guest's clock.
 *
 * Each time is reported once. Interrupts and waits on the host inside a task's run interval belong
 * to that interval. An interrupt of at least `than_ns` splits it: the parts before and after it are
 * intervals of their own.
 */
#ifndef STALL_STALL_H
#define STALL_STALL_H

#include "host-collector/analyze/stall/facts.h"

struct stall_options {
	int64_t than_ns; /* the threshold */
	bool all;        /* also report intervals in which nothing was denied */
};

/* Called once per interval, when its facts are complete. The facts are borrowed for the call. */
typedef void (*stall_found)(void *context, const struct stall_facts *facts);

struct stall_detector;

/* Subscribes to the model. Feed the model no more after stall_free. Copies the options. Returns
 * NULL if out of memory. */
struct stall_detector *stall_new(struct model *m, const struct stall_options *options,
				 stall_found found, void *context);
void stall_free(struct stall_detector *d);
/* Returns the interrupt chains that the detector uses (overdue.h). Borrowed. */
struct chains *stall_chains(const struct stall_detector *d);
/* Reports the intervals that are still open, as ongoing; call it after model_finish. */
void stall_finish(struct stall_detector *d);
/* Fills `out` with the facts of at most `max` open intervals in which something has been denied for
 * the threshold. Uses the host's states too, so it includes VMs whose agent is silent. Returns
 * their number. */
size_t stall_ongoing(struct stall_detector *d, struct stall_facts *out, size_t max);
/* Returns the number of intervals that were dropped because memory ran out. */
uint64_t stall_dropped(const struct stall_detector *d);

#endif
