/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Joins the `watchdog: BUG: soft lockup` lines of a guest's kernel log to the incidents that they
 * report. The guest's watchdog observes only its own CPU. It blames the task that it finds there,
 * even if the vCPU did not run.
 */
#ifndef STALL_WATCHDOG_H
#define STALL_WATCHDOG_H

#include "host-collector/analyze/stall/report.h"

/* Parses a line of Linux' kernel/watchdog.c, for example "watchdog: BUG: soft lockup - CPU#3 stuck
 * for 22s! [comm:1234]", or "NMI watchdog: ..." before 4.17. Leaves vm, boot and dmesg_us 0.
 * Returns false for any other line. */
bool watchdog_parse(const char *text, struct report_watchdog *out);
/*
 * Joins each line of r->watchdogs to an incident of its VM, boot and CPU: the one that covers most
 * of the time for which the line reports the CPU as stuck, but at least a tenth, by dmesg times.
 * Sets the line's `opinion` and the incident's watchdog detector. A line without such an incident
 * keeps `incident` -1.
 */
void watchdog_join(struct report *r);

#endif
