/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's own word on a stall: its kernel's `watchdog: BUG: soft lockup` lines, joined to the
 * incidents that they are about. The kernel's watchdog knows its own CPU only: it blames the task
 * that it finds there, also when the vCPU did not run.
 */
#ifndef ANALYZE_WATCHDOG_H
#define ANALYZE_WATCHDOG_H

#include "host-collector/analyze/report.h"

/* The line is printed by the first tick of a timer that fires every 2/5 of watchdog_thresh (60 s at
 * most) after the threshold, or, of a stall by the host, at the first tick after it. */
#define WATCHDOG_LATE_US 24000000ull

/* kernel/watchdog.c: "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [comm:1234]", before 4.17
 * "NMI watchdog: ...". False if it is something else. */
bool watchdog_parse(const char *text, struct report_watchdog *out);
/*
 * Joins each line to the incident of its VM and CPU that it can be about: by the guest's own dmesg
 * times, the newest that began before the line. Says of the incident whether the guest blames whom
 * the verdict blames. Lines about no incident stay in r->watchdogs with `incident` -1.
 */
void watchdog_join(struct report *r);

#endif
