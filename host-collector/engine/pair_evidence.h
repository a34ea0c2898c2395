/* SPDX-License-Identifier: GPL-2.0-only */
/* Adds the pairs of events that the user named to the evidence of an incident: those of its vCPU
 * that overlap it. */
#ifndef ENGINE_PAIR_EVIDENCE_H
#define ENGINE_PAIR_EVIDENCE_H

#include "host-collector/analyze/event/pair_watch.h"
#include "host-collector/analyze/stall/report.h"

/* The pairs of one definition that overlap an incident. */
struct pair_found {
	const struct pair_definition *definition;
	struct pair_overlaps pairs;
};

/* Returns the vCPU and the time of an incident. */
struct pair_window pair_window_of(const struct incident *incident);

/* Adds a line for each of the REPORT_EVIDENCE_PAIRS - 1 definitions with the longest pairs: the
 * longest pair and the number of pairs. A last line counts the pairs of the others. Sorts `all`. */
void pair_evidence_add(struct pair_found *all, size_t n, struct incident *incident);
/* Does the same for the pairs of a live model. w: NULL if there are none. */
void pair_evidence_watched(const struct pair_watch *w, struct incident *incident);

#endif
