/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stall detector: watches the model and hands out the facts of every stretch of at least
 * `than_ns` in which a guest CPU
 *   - ran one task without a sched_switch,
 *   - stood in one interrupt or softirq, or
 *   - was kept from running by the host while it idled, or while its agent was silent.
 * Every piece of time is told once: an interrupt or a host's wait inside a task's stretch belongs
 * to that stretch, an interrupt that is itself long enough stands for the stretch around it.
 */
#ifndef STALL_STALL_H
#define STALL_STALL_H

#include "host-collector/analyze/stall/facts.h"

struct stall_options {
	int64_t than_ns;
	bool all; /* also stretches in which nothing was denied */
};

/* Called once per stretch when everything about it is known; borrowed for the call. */
typedef void (*stall_found)(void *context, const struct stall_facts *facts);

struct stall_detector;

/* Subscribes to the model, which must not be fed any more once the detector is freed. NULL on
 * ENOMEM. */
struct stall_detector *stall_new(struct model *m, const struct stall_options *options,
				 stall_found found, void *context);
void stall_free(struct stall_detector *d);
/* The interrupts' chains that it goes by (overdue.h). Borrowed. */
struct chains *stall_chains(const struct stall_detector *d);
/* After model_finish: what is still open is handed out as ongoing. */
void stall_finish(struct stall_detector *d);
/* The stretches open now in which something has been denied for the threshold already, at most
 * `max`; returns how many. By the host's own state, so a silent guest hides nothing. */
size_t stall_ongoing(struct stall_detector *d, struct stall_facts *out, size_t max);
/* Stretches that could not be kept until they were complete, for lack of memory. */
uint64_t stall_dropped(const struct stall_detector *d);

#endif
