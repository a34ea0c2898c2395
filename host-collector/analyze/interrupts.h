/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest's interrupts and softirqs by its own account: how often each came and how long it took
 * from entry to exit, what nested inside it included. The time is the host's: it holds what the
 * vCPU was kept from the guest meanwhile.
 */
#ifndef ANALYZE_INTERRUPTS_H
#define ANALYZE_INTERRUPTS_H

#include "clock/histogram.h"
#include "host-collector/model/model.h"

struct interrupt_source {
	uint32_t vm;
	enum guest_cpu_state kind; /* HARDIRQ or SOFTIRQ */
	uint32_t number;           /* as in guest_interrupt */
	bool vector;
	struct histogram durations;
	uint64_t torn; /* began or ended unseen: in no histogram */
};

struct interrupts;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct interrupts *interrupts_new(struct model *m);
void interrupts_free(struct interrupts *x);
/* 0, or -ENOMEM: something could not be counted. */
int interrupts_error(const struct interrupts *x);
/* Item number `index`, NULL past the last. Borrowed. Of more than 1024 sources the least recently
 * seen are forgotten: a guest chooses its numbers. */
const struct interrupt_source *interrupts_source(const struct interrupts *x, size_t index);

#endif
