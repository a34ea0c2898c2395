/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Computes the summary of a run from the model of a recording, over all VMs and vCPUs together:
 *
 *	run_delay.wakeup, .preempted   run delay of vCPU threads, by its cause
 *	exit.REASON, exits             VM-exits: time in KVM and the VMM, without sleep and waits
 *	irq.SOURCE.STAGE               interrupt chains, see analyze/chain/chain.h
 *	handler.hardirq, .softirq      time in the guest's handlers, from the guest's events
 *	pair.NAME                      pairs of events that the user named: summarizer_add()
 *	share.STATE                    share of the vCPUs' time, percent
 */
#ifndef COMPARE_SUMMARIZE_H
#define COMPARE_SUMMARIZE_H

#include "host-collector/compare/run_summary.h"
#include "host-collector/model/model.h"

struct histogram;
struct summarizer;

/* Allocates a summarizer and subscribes to the model, which must not receive events after
 * summarizer_free(). Returns NULL if there is no memory. */
struct summarizer *summarizer_new(struct model *m);
void summarizer_free(struct summarizer *s);
/* Adds a figure of times that the caller measured, also if it has no values. Returns 0 or
 * -ENOMEM. */
int summarizer_add(struct summarizer *s, const char *figure, const struct histogram *values);
/* Fills the figures and the span of `out`; call it after model_finish(). Returns 0 or -ENOMEM. */
int summarizer_finish(struct summarizer *s, struct run_summary *out);

/* Returns the position of a figure in the order of cause: a change of an earlier figure may cause a
 * change of a later one. */
unsigned figure_rank(const char *name);

#endif
