/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who else saw a stall: three detectors that know nothing of each other. The guest's scheduler
 * stream shows tasks that wait for a CPU, its timer interrupt shows when a CPU does not even take
 * that, its kernel's own watchdog writes to the log. For each incident every one of them says that
 * it saw it, or why not.
 */
#ifndef STALL_DETECTORS_H
#define STALL_DETECTORS_H

#include "host-collector/analyze/stall/facts.h"
#include "host-collector/analyze/stall/report.h"

/* Fills out->detectors; the guest's watchdog as if no line of its log were about this. */
void detectors_fill(const struct stall_facts *f, const struct model *m, struct incident *out);
/* A line of the guest's log is about this incident. */
void detectors_watchdog(const struct report_watchdog *line, struct incident *out);

#endif
