/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest's interrupts and softirqs by its own account: how often each came, how long it took from
 * entry to exit, what nested inside it included, and how dense they came. The time is the host's:
 * it holds what the vCPU was kept from the guest meanwhile.
 *
 * Density is judged for each guest CPU in windows of INTERRUPTS_WINDOW_NS: a storm is a window with
 * 2,000 a second or more that take 60 % of it, as in the verdict of that name.
 */
#ifndef TABLES_INTERRUPTS_H
#define TABLES_INTERRUPTS_H

#include "clock/histogram.h"
#include "host-collector/tables/figures_options.h"
#include "host-collector/model/model.h"

#define INTERRUPTS_WINDOW_NS 100000000ll

struct interrupt_source {
	uint32_t vm;
	uint16_t cpu;              /* only if per_vcpu */
	enum guest_cpu_state kind; /* HARDIRQ or SOFTIRQ */
	uint32_t number;           /* as in guest_interrupt */
	bool vector;
	struct histogram durations;
	uint64_t torn;       /* began or ended unseen: in no histogram */
	uint64_t peak_count; /* in the fullest window of one guest CPU */
	int64_t peak_ns;     /* taken of the window of which most was taken */
	int64_t storm_ns;    /* windows that were storms */
};

struct interrupts;

/* Subscribes to the model, which must not be fed any more once this is freed. With than_ns, shorter
 * ones are in no figure. NULL on ENOMEM. */
struct interrupts *interrupts_new(struct model *m, const struct figures_options *options);
void interrupts_free(struct interrupts *x);
void interrupts_clear(struct interrupts *x);
/* Counts the windows that are still open. 0, or -ENOMEM: something could not be counted. */
int interrupts_finish(struct interrupts *x);
/* Item number `index`, NULL past the last. Borrowed. Of more than 4096 sources the least recently
 * seen are forgotten: a guest chooses its numbers. */
const struct interrupt_source *interrupts_source(const struct interrupts *x, size_t index);

#endif
