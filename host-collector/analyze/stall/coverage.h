/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much of each vCPU's time was observed, and the answer that this supports: "no stall" needs
 * enough observed time. On the host side, time is observed while the state of the vCPU thread is
 * known. On the guest side, it is observed while the guest's events show what the guest CPU does.
 * An unobserved time of at least the threshold is kept as a gap, because it may hide a stall.
 */
#ifndef STALL_COVERAGE_H
#define STALL_COVERAGE_H

#include "host-collector/analyze/stall/report.h"

enum { COVERAGE_NEEDED_PERCENT = 90 };

struct coverage;

/* Subscribes to the model. Feed the model no more after coverage_free. from: nothing before it
 * counts; 0: all. Returns NULL if out of memory. */
struct coverage *coverage_new(struct model *m, int64_t than_ns, struct host_ns from);
void coverage_free(struct coverage *c);
/* Records that the vCPU had a stall that the report will not hold, because it was reported live. */
void coverage_stall(struct coverage *c, uint32_t vm, uint32_t vcpu);
/* Adds the gaps, and the coverage and the answer of each vCPU, to the report; call it after
 * model_finish, when the report has its vCPUs and incidents. needed_percent: the share of the time
 * that must be observed on both sides for "no stall". Returns 0 or -ENOMEM. */
int coverage_give(struct coverage *c, unsigned needed_percent, struct report *r);

/* Returns true if the report has vCPUs, every VM has one, and no vCPU's answer is "cannot tell". */
bool coverage_supports(const struct report *r);
/* Sums the coverage of a VM's vCPUs. The answer is STALLS if any vCPU had a stall, else CANNOT_TELL
 * if any vCPU has that answer. Returns false if the report has no vCPU of the VM. */
bool coverage_of_vm(const struct report *r, uint32_t vm, struct report_coverage *out);
/* Returns the observed share in percent, rounded down to a tenth, so that only full coverage gives
 * 100.0. Returns 0 if span_ns is 0. */
double coverage_percent(int64_t observed_ns, int64_t span_ns);

#endif
