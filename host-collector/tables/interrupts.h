/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table `irq`: counts a guest's interrupts and softirqs as the guest's kernel reports them. It
 * shows how often each came, its time from entry to exit (nested ones included), and the highest
 * rate. The time is host time, so it includes time in which the vCPU was outside the guest.
 *
 * Rates are computed for each guest CPU in windows of INTERRUPTS_WINDOW_NS. A window with at least
 * 2,000 interrupts per second that take 60 % of it is a storm, as in the verdict guest_irq_storm.
 */
#ifndef TABLES_INTERRUPTS_H
#define TABLES_INTERRUPTS_H

#include "clock/histogram.h"
#include "host-collector/tables/analysis.h"
#include "host-collector/model/model.h"

#define INTERRUPTS_WINDOW_NS 100000000ll

struct interrupt_source {
	uint32_t vm;
	uint16_t cpu;              /* guest CPU, only if per_vcpu */
	enum guest_cpu_state kind; /* HARDIRQ or SOFTIRQ */
	uint32_t number;           /* irq, vector or softirq number, as in struct guest_interrupt */
	bool vector;
	struct histogram durations;
	uint64_t torn;       /* incomplete: entry or exit is missing; in no histogram */
	uint64_t peak_count; /* largest count in one window of one guest CPU */
	int64_t peak_ns;     /* longest time taken in one window of one guest CPU */
	int64_t storm_ns;    /* total length of the windows that were storms */
};

struct interrupts;

/* With than_ns, shorter interrupts and softirqs do not count. finish() counts the windows that are
 * still open. */
extern const struct analysis interrupts_analysis;
/* Returns source number `index`, NULL past the last. Borrowed. Keeps 4096 sources, because a
 * guest chooses its numbers; further ones replace the least recently seen. */
const struct interrupt_source *interrupts_source(const struct interrupts *x, size_t index);

#endif
