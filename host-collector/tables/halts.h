/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What KVM's polling before it lets a halted vCPU sleep was worth: wake-ups that came while it
 * still polled, and the time that it polled in vain. KVM tells the length of each halt and whether
 * the thread slept (kvm_vcpu_wakeup), and the limit of its polling whenever that changes
 * (kvm_halt_poll_ns); a halt that slept has polled for the limit first, if nothing else wanted the
 * pCPU, so what it polled in vain is an upper bound, and unknown until the limit has changed once.
 */
#ifndef TABLES_HALTS_H
#define TABLES_HALTS_H

#include "clock/histogram.h"
#include "host-collector/tables/figures_options.h"
#include "host-collector/model/model.h"

struct halts_vcpu {
	uint32_t vm, vcpu;
	struct histogram lengths; /* of all halts */
	uint64_t polled;          /* halts that ended while it polled, ... */
	int64_t polled_ns;        /* ... which took so long */
	uint64_t slept;
	int64_t slept_ns; /* polling in vain included */
	bool limit_known;
	int64_t limit_ns;    /* now */
	int64_t in_vain_ns;  /* at most; if limit_known */
	uint64_t no_limit;   /* halts that slept before any limit was known */
	uint64_t migrations; /* of the thread to another pCPU, between two times that it ran */

	bool ran;
	uint16_t ran_on;
};

struct halts;

/* Subscribes to the model, which must not be fed any more once this is freed. With than_ns, shorter
 * halts are in no figure. NULL on ENOMEM. */
struct halts *halts_new(struct model *m, const struct figures_options *options);
void halts_free(struct halts *h);
/* Forgets all figures, but not the limits. */
void halts_clear(struct halts *h);
/* 0, or -ENOMEM: something could not be counted. */
int halts_error(const struct halts *h);
/* Item number `index`, NULL past the last. Borrowed. */
const struct halts_vcpu *halts_vcpu(const struct halts *h, size_t index);

#endif
