/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's own word on a stall: its kernel's `watchdog: BUG: soft lockup` lines, joined to the
 * incidents that they are about. The kernel's watchdog knows its own CPU only: it blames the task
 * that it finds there, also when the vCPU did not run.
 */
#ifndef STALL_WATCHDOG_H
#define STALL_WATCHDOG_H

#include "host-collector/analyze/stall/report.h"

/* kernel/watchdog.c: "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [comm:1234]", before 4.17
 * "NMI watchdog: ...". False if it is something else. */
bool watchdog_parse(const char *text, struct report_watchdog *out);
/*
 * Joins each line to the incident of its VM, boot and CPU that covers most of the time for which
 * the line says that the CPU was stuck, by the guest's own dmesg times; at least a tenth of it.
 * Says of the incident whether the guest blames whom the verdict blames. Lines about no incident
 * stay in r->watchdogs with `incident` -1.
 */
void watchdog_join(struct report *r);

#endif
