/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table `tasks`: compares, for each task of a guest, the time that the guest's kernel charged
 * to the task, including interrupts that ran meanwhile, with what the vCPU did in that time.
 *
 * The analysis joins two ordered streams of spans for each guest CPU: the guest CPU's and its
 * vCPU's. Guest time that no vCPU span covers is `unknown`. bill_believed_ns() is exactly the sum
 * of state_ns.
 */
#ifndef TABLES_BILL_H
#define TABLES_BILL_H

#include "host-collector/tables/analysis.h"
#include "host-collector/model/model.h"

struct bill_task {
	uint32_t vm;
	uint16_t cpu;  /* guest CPU, only if per_vcpu */
	uint32_t boot; /* boot of the guest, 0 the first; tasks of different boots may have equal
			  pids */
	int32_t pid;
	uint64_t stays;                     /* number of switches to the task */
	int64_t state_ns[VCPU_STATE_COUNT]; /* time of the vCPU in each state while the task was
					       current */
	int64_t longest_kept_ns; /* longest unbroken time outside the guest while the task was
				    current */
};

struct bill;

/* clear() keeps spans that are not joined yet; finish() charges them. */
extern const struct analysis bill_analysis;
/* Returns task number `index`, NULL past the last. Borrowed. Keeps 8192 tasks; further ones
 * replace the least recently seen. */
const struct bill_task *bill_task(const struct bill *b, size_t index);
int64_t bill_believed_ns(const struct bill_task *t);
/* Returns the time in which the vCPU ran: in the guest, or in an exit of the guest. */
int64_t bill_ran_ns(const struct bill_task *t);

#endif
