/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much of each vCPU's time was observed, and what may be said of it: that nothing was found
 * means something only where somebody looked. Of the host's side, time is observed while the
 * thread's state is known; of the guest's, while its kernel's events say what the CPU does.
 * Stretches of at least the threshold that were not observed are kept as gaps: each may hide a
 * stall.
 */
#ifndef STALL_COVERAGE_H
#define STALL_COVERAGE_H

#include "host-collector/analyze/stall/report.h"

enum { COVERAGE_NEEDED_PERCENT = 90 };

struct coverage;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct coverage *coverage_new(struct model *m, int64_t than_ns);
void coverage_free(struct coverage *c);
/* It had a stall that the report will not hold: it was handed out at once. */
void coverage_stall(struct coverage *c, uint32_t vm, uint32_t vcpu);
/* After model_finish, of the vCPUs and incidents that the report holds: their coverage, their
 * answers, and the gaps. needed_percent: of both sides, for a negative answer. 0 or -ENOMEM. */
int coverage_give(struct coverage *c, unsigned needed_percent, struct report *r);

/* Is there an answer for every vCPU, and a vCPU for every VM? */
bool coverage_supports(const struct report *r);
/* The sums over a VM's vCPUs (answer: stalls if any has one, else cannot tell if any cannot).
 * false: the report holds none of its vCPUs. */
bool coverage_of_vm(const struct report *r, uint32_t vm, struct report_coverage *out);
/* Percent, rounded down to a tenth: what is not all is not 100.0. 0 of nothing. */
double coverage_percent(int64_t observed_ns, int64_t span_ns);

#endif
