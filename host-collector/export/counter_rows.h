/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the counters of a Perfetto trace: for each vCPU its run delay in each 100 ms, for each
 * guest CPU the latency of each interrupt and the guest's own count of steal. The sum of a run
 * delay's values, and the largest value of a latency, equal those in the tables of the report.
 */
#ifndef EXPORT_COUNTER_ROWS_H
#define EXPORT_COUNTER_ROWS_H

#include "host-collector/analyze/chain/chain.h"
#include "host-collector/export/boottime.h"
#include "host-collector/export/trace_file.h"
#include "host-collector/model/model.h"

enum { COUNTERS_MAX = 16384 };
#define COUNTER_WINDOW_NS 100000000ll

/* One counter. window, sum_ns: of a run delay: its current window of 100 ms, and its sum so far. */
struct counter {
	uint64_t track;
	int64_t window, sum_ns;
	bool nonzero; /* the last value that was written is not 0 */
};

struct counter_rows {
	struct trace_file *file;
	struct boottime *boottime;
	const struct model *model;
	struct lru index;
	struct counter *items;
	struct lru groups; /* by VM; the slot's track */
	uint64_t *group_tracks;
};

int counter_rows_init(
	struct counter_rows *x); /* set the borrowed members first. Returns 0 or -ENOMEM */
void counter_rows_fini(struct counter_rows *x);
/* Add a vCPU's span, a reading of steal, a closed chain. */
void counter_rows_span(struct counter_rows *x, const struct vcpu_span *span);
void counter_rows_steal(struct counter_rows *x, const struct guest_steal *steal);
void counter_rows_chain(struct counter_rows *x, const struct chain *c);
/* Writes the sums of the current windows. */
void counter_rows_finish(struct counter_rows *x);

#endif
