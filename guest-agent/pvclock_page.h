/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pvclock parameters that this guest's own kvmclock is computed from: the page that the kernel
 * maps into every process for the vDSO (the boot CPU's, one line for all while the master clock is
 * on). Reading it costs no system call.
 */
#ifndef AGENT_PVCLOCK_PAGE_H
#define AGENT_PVCLOCK_PAGE_H

#include "proto/message.h"

struct pvclock_page {
	const volatile void *at; /* NULL: this process has no such mapping */
	bool readable;           /* the kernel has let us read it: it will from now on */
	uint64_t tsc_hz;
};

/* tsc_hz: the TSC's nominal rate, to tell parameters from noise. Never fails: without a page every
 * read says "not known". */
void pvclock_page_init(struct pvclock_page *p, uint64_t tsc_hz);
/* known = false: there is no kvmclock here (TCG, kvm-clock disabled, master clock off), the host
 * was writing all the time, or what is there runs at another rate than the TSC. */
void pvclock_page_read(struct pvclock_page *p, struct message_vm_clock_pvclock *out);

#endif
