/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a source's events were lost, and by whom: spans of host time with counts. Losses near each
 * other become one span; when there are too many, the spans nearest to each other do, so that the
 * counts always sum to all that was lost.
 */
#ifndef TIMELINE_LOSSES_H
#define TIMELINE_LOSSES_H

#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"

enum { LOSS_SPANS_MAX = 64 };

struct loss_counts {
	uint64_t kernel;  /* its kernel's rings were full */
	uint64_t user;    /* by its agent, whose queue was full */
	uint64_t channel; /* sent, and not received */
};

struct loss_span {
	struct host_ns begin, end; /* lost somewhere within */
	struct loss_counts counts;
};

struct losses {
	size_t n;
	struct loss_span spans[LOSS_SPANS_MAX]; /* by begin, apart from each other */
};

/* Where there are too many the two that are nearest to each other become one. */
void losses_add(struct losses *l, const struct loss_span *span);

enum loss_truth {
	LOSS_BY_USER, /* dropped by its agent, who told later */
	LOSS_NONE,    /* received after all */
};
/* Up to n events that were taken for lost on the way, the newest first, were not. Returns how many.
 */
uint64_t losses_correct(struct losses *l, uint64_t n, enum loss_truth truth);

#endif
