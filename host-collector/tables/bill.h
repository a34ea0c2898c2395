/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bill to guest tasks: for each task of a guest, how long it believed that it ran (its guest
 * CPU's own account, the interrupts that it carried included), and what its vCPU did in that time:
 * how long it really ran, and where the rest went.
 *
 * Joins two streams of spans per guest CPU, the guest's and its vCPU's, both in order. Guest time
 * that no vCPU span covers is `unknown`. believed_ns is the sum of state_ns exactly.
 */
#ifndef TABLES_BILL_H
#define TABLES_BILL_H

#include "host-collector/tables/figures_options.h"
#include "host-collector/model/model.h"

struct bill_task {
	uint32_t vm;
	uint16_t cpu;  /* only if per_vcpu */
	uint32_t boot; /* of the guest's kernel, 0 the first: another has other tasks of the same
			  ids */
	int32_t pid;
	uint64_t stays;                     /* times that it was switched to */
	int64_t state_ns[VCPU_STATE_COUNT]; /* of its vCPU while the guest ran the task */
	int64_t longest_kept_ns;            /* within one stay, kept from the guest at a stretch */
};

struct bill;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct bill *bill_new(struct model *m, const struct figures_options *options);
/* Forgets all figures, but not what is still unjoined. */
void bill_clear(struct bill *b);
void bill_free(struct bill *b);
/* After model_finish: what is still unjoined is charged. 0, or -ENOMEM: something is missing. */
int bill_finish(struct bill *b);
/* 0, or -ENOMEM: something could not be counted. */
int bill_error(const struct bill *b);
/* Item number `index`, NULL past the last. Borrowed. Of more than 8192 tasks the least recently
 * seen are forgotten. */
const struct bill_task *bill_task(const struct bill *b, size_t index);
int64_t bill_believed_ns(const struct bill_task *t);
/* Really ran: in the guest, or in an exit on its behalf. */
int64_t bill_ran_ns(const struct bill_task *t);

#endif
