/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Three independent tests for a stall. The scheduler test looks for tasks that wait for the CPU.
 * The tick test looks for missing timer interrupts. The watchdog test looks for soft lockup lines
 * in the guest's log. For each incident, each test states whether it found the stall, and the
 * reason.
 */
#ifndef STALL_DETECTORS_H
#define STALL_DETECTORS_H

#include "host-collector/analyze/stall/facts.h"
#include "host-collector/analyze/stall/report.h"

/* Fills out->detectors. The watchdog test assumes that no log line belongs to the incident. */
void detectors_fill(const struct stall_facts *f, const struct model *m, struct incident *out);
/* Records that this line of the guest's log belongs to the incident. */
void detectors_watchdog(const struct report_watchdog *line, struct incident *out);

#endif
