/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the pvclock parameters of this guest's kvmclock. The kernel maps them into each process
 * for the vDSO. The page is that of the boot CPU; while the master clock is on, one kvmclock line
 * holds for all CPUs. A read makes no system call once the page has proved readable.
 */
#ifndef AGENT_PVCLOCK_PAGE_H
#define AGENT_PVCLOCK_PAGE_H

#include <stdbool.h>

#include "proto/message.h"

struct pvclock_page {
	const volatile void *at; /* the mapped page; NULL: this process has none */
	bool readable;           /* a test showed that the page is readable; it stays so */
	uint64_t tsc_hz;
};

/* Finds the page. Never fails: without a page each read returns known = false. tsc_hz: nominal TSC
 * frequency, which the parameters must match. */
void pvclock_page_init(struct pvclock_page *p, uint64_t tsc_hz);
/* Reads the parameters. Sets known = false if there is no kvmclock (TCG, kvm-clock disabled, master
 * clock off). Also does so if the host wrote during all attempts, or if the rate differs from the
 * TSC's. */
void pvclock_page_read(struct pvclock_page *p, struct message_vm_clock_pvclock *out);

/* Returns true if this kernel's clocks come from kvmclock. Such clocks read the same on all CPUs,
 * even if the CPUs' TSCs differ. Opens a file of sysfs. */
bool pvclock_is_clocksource(void);

#endif
