/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records when events of a source were lost and who lost them, as intervals of host time with
 * counts. Losses within 100 ms of each other share an interval. When the table is full, the two
 * nearest intervals are joined, so the counts always sum to all losses.
 */
#ifndef TIMELINE_LOSSES_H
#define TIMELINE_LOSSES_H

#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"

enum { LOSS_SPANS_MAX = 64 };

struct loss_counts {
	uint64_t kernel;  /* lost because the kernel's rings were full */
	uint64_t user;    /* dropped by the agent because its queue was full */
	uint64_t channel; /* sent and not received */
};

struct loss_span {
	struct host_ns begin, end; /* the events were lost within this interval */
	struct loss_counts counts;
};

struct losses {
	size_t n;
	struct loss_span spans[LOSS_SPANS_MAX]; /* by begin; not overlapping */
};

/* Adds an interval. Joins the two nearest intervals if the table is full. */
void losses_add(struct losses *l, const struct loss_span *span);

enum loss_truth {
	LOSS_BY_USER, /* the agent reported later that it dropped them */
	LOSS_NONE,    /* they arrived later */
};
/* Corrects up to `n` events that were counted as lost on the channel, newest first: counts them as
 * dropped by the agent or removes them. Returns the number of corrected events. */
uint64_t losses_correct(struct losses *l, uint64_t n, enum loss_truth truth);

#endif
