/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Builds the first sentences of a report: the number of stalls and the length of the recording, how
 * much of that time was observed, and the vCPUs for which the report cannot tell. Text, page, JSON
 * and the last line of `watch` use these sentences.
 */
#ifndef VIEW_HEADLINE_H
#define VIEW_HEADLINE_H

#include "host-collector/analyze/stall/report.h"

enum { HEADLINE_LINES_MAX = 24, HEADLINE_LINE_BYTES = 1536 };

struct headline {
	char count[160];                /* "3 stalls in 13.2 s" */
	char rest[HEADLINE_LINE_BYTES]; /* rest of that sentence: ", the longest ..." or "." */
	size_t n_lines; /* number of further sentences; first those that say "cannot tell" */
	char lines[HEADLINE_LINES_MAX][HEADLINE_LINE_BYTES];
};

/* Fills in `out` from the report. Escapes names. */
void headline_make(const struct report *r, struct headline *out);
/* Writes how much of a VM's time was observed, as one line without a full stop: "VM web: 98.7 %
 * of its vCPUs' time on the host, 97.0 % in the guest". */
void headline_observed(const struct report *r, uint32_t vm, char *out, size_t out_bytes);

#endif
