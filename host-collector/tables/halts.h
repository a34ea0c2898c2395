/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table `halts`: shows the effect of KVM's halt polling: the number of wake-ups while KVM
 * polled, and the time that it polled without a wake-up.
 *
 * kvm_vcpu_wakeup reports the length of each halt and whether the thread slept. kvm_halt_poll_ns
 * reports each change of the polling limit. A halt that slept has first polled for the limit,
 * unless something else wanted the pCPU. So the time polled without success is an upper bound. It
 * is unknown until the limit has changed once.
 */
#ifndef TABLES_HALTS_H
#define TABLES_HALTS_H

#include "clock/histogram.h"
#include "host-collector/tables/analysis.h"
#include "host-collector/model/model.h"

struct halts_vcpu {
	uint32_t vm, vcpu;
	struct histogram lengths; /* lengths of all halts */
	uint64_t polled;          /* halts that ended during polling */
	int64_t polled_ns;        /* total length of these halts */
	uint64_t slept;
	int64_t slept_ns; /* total length of halts that slept, unsuccessful polling included */
	bool limit_known;
	int64_t limit_ns;    /* current polling limit */
	int64_t in_vain_ns;  /* upper bound of the unsuccessful polling; valid if limit_known */
	uint64_t no_limit;   /* halts that slept before a limit was known */
	uint64_t migrations; /* moves of the thread to another pCPU between two runs */

	bool ran;
	uint16_t ran_on;
};

struct halts;

/* With than_ns, shorter halts do not count. clear() keeps the polling limits. */
extern const struct analysis halts_analysis;
/* Returns vCPU number `index`, NULL past the last. Borrowed. Keeps 4096 vCPUs; further ones
 * replace the least recently seen. */
const struct halts_vcpu *halts_vcpu(const struct halts *h, size_t index);

#endif
