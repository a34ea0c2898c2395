/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a report says first, in words: how many stalls there were in how much time, how much of that
 * time was observed, and of which vCPUs nothing can be said. Text, page, JSON and the last line of
 * `watch` take their words from here.
 */
#ifndef VIEW_HEADLINE_H
#define VIEW_HEADLINE_H

#include "host-collector/analyze/stall/report.h"

enum { HEADLINE_LINES_MAX = 24, HEADLINE_LINE_BYTES = 1536 };

struct headline {
	char count[160];                /* "3 stalls in 13.2 s" */
	char rest[HEADLINE_LINE_BYTES]; /* of that sentence: ", the longest ..." or "." */
	size_t n_lines;                 /* sentences that follow, what cannot be told first */
	char lines[HEADLINE_LINES_MAX][HEADLINE_LINE_BYTES];
};

/* Names are escaped. */
void headline_make(const struct report *r, struct headline *out);
/* "VM web: 98.7 % of its vCPUs' time on the host, 97.0 % in the guest": how much of a VM's time was
 * observed, in one line without a full stop. */
void headline_observed(const struct report *r, uint32_t vm, char *out, size_t out_bytes);

#endif
