/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns a model that is fed a recording into the run's summary:
 *
 *	run_delay.wakeup, .preempted   waits of vCPU threads for a pCPU, by what made them wait
 *	exit.REASON, exits        VM-exits: time in KVM and the VMM, without sleep and waits
 *	irq.SOURCE.STAGE               interrupt chains, see analyze/chain/chain.h
 *	handler.hardirq, .softirq      the guest's handlers by its own account
 *	share.STATE                    of the vCPUs' time, percent
 *
 * All VMs and vCPUs of a recording together.
 */
#ifndef COMPARE_SUMMARIZE_H
#define COMPARE_SUMMARIZE_H

#include "host-collector/compare/run_summary.h"
#include "host-collector/model/model.h"

struct summarizer;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct summarizer *summarizer_new(struct model *m);
void summarizer_free(struct summarizer *s);
/* After model_finish: fills in figures and span. 0 or -ENOMEM. */
int summarizer_finish(struct summarizer *s, struct run_summary *out);

/* Where a figure stands in the order of cause: what comes first may have moved what comes later. */
unsigned figure_rank(const char *name);

#endif
