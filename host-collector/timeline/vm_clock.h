/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One VM's guest TSC and kvmclock as its hypervisor's own parameters give them, exact where they
 * can be believed.
 *
 * Guest stamps are one TSC for the whole guest, so an epoch (one offset and scaling, keyed by
 * value) exists while every vCPU that was heard of has the same, and all sources that speak of a
 * vCPU agree; one of them must have seen what is in force (struct kvm_vcpu, debugfs), as a traced
 * write shows only what was asked for. An epoch is proven once a round trip of the VM's channel,
 * host TSC before and after guest TSC, has confirmed it.
 *
 * A round trip that contradicts an epoch contests it. The parameters are the host's evidence, the
 * stamps of a round trip are the guest's choice: the guest may lie, or the parameters may be stale.
 * Nothing here tells which, so neither is believed: times are still placed by the parameters, but
 * nothing bounds their error. A contradiction that lies where a later epoch turns out to have begun
 * is none.
 */
#ifndef TIMELINE_VM_CLOCK_H
#define TIMELINE_VM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/echo.h"
#include "clock/pvclock.h"
#include "clock/tsc_scaling.h"
#include "clock/types.h"
#include "proto/message.h"

struct vm_clock;

struct vm_clock *vm_clock_new(void); /* NULL on ENOMEM */
void vm_clock_free(struct vm_clock *c);

/* Facts, in order of arrival. 0 or -ENOMEM; parameters as message.c lets them through. */
int vm_clock_learn(struct vm_clock *c, const struct message_vm_clock *m);
/* The guest's stream is guest TSC. */
void vm_clock_observe(struct vm_clock *c, const struct echo_observation *o);
/* What the guest reads in its own pvclock page. */
void vm_clock_guest_page(struct vm_clock *c, const struct pvclock *page);

/* Host TSC: all that is asked for lies inside (a guest's boot, guest_clock.h). */
struct vm_clock_window {
	uint64_t from, to;
};

enum vm_clock_trust {
	VM_CLOCK_SILENT,    /* says nothing of this time */
	VM_CLOCK_CONTESTED, /* says where, and a round trip contradicts it */
	VM_CLOCK_PROVEN,
};

/* The host TSC is in [*first, *first + *span]; unchanged if VM_CLOCK_SILENT: that is, unless
 * exactly one epoch can be meant that a round trip has confirmed or contradicted. Before the first
 * epoch no change is assumed. */
enum vm_clock_trust vm_clock_to_host(const struct vm_clock *c, const struct vm_clock_window *window,
				     struct guest_tsc guest, struct host_tsc *first,
				     uint64_t *span);
/* Was an epoch that may have been in force at `host` contradicted? */
bool vm_clock_contested(const struct vm_clock *c, struct host_tsc host);
/* The contested epochs included. */
bool vm_clock_to_guest(const struct vm_clock *c, struct host_tsc host, struct guest_tsc *guest);
/* kvmclock as this vCPU reads it, exact; `host` tells which parameters are in force. false if none
 * are known, or at a time when they may have just changed. */
bool vm_clock_kvmclock(const struct vm_clock *c, uint32_t vcpu, struct host_tsc host,
		       struct guest_tsc guest, struct kvmclock_ns *out);

/* The guest TSC at which kvmclock stood still, and at which it went on. */
struct vm_clock_pause {
	uint64_t stopped, resumed;
	struct host_tsc
		seen; /* the later line was in force by then: tells which boot's TSC it is */
};
enum { VM_CLOCK_PAUSES_MAX = 64 };
/*
 * Pauses of the VM, by the kvmclock lines around each: a line begins (tsc_timestamp) where the
 * clock went on, at the value (system_time) that the line before it reads where the clock stopped.
 * Shorter ones than 1 ms are none. Oldest first; of more than VM_CLOCK_PAUSES_MAX the newest.
 * Returns how many.
 */
size_t vm_clock_pauses(const struct vm_clock *c, struct vm_clock_pause out[VM_CLOCK_PAUSES_MAX]);

struct vm_clock_epoch {
	uint64_t from_min, from_max; /* began within, host TSC; from_min 0: not bounded */
	bool known;                  /* false: vCPUs or sources disagree */
	struct tsc_scaling tsc;
	uint64_t agreed, contradicted; /* round trips */
	uint64_t contradicted_at;      /* the first; host TSC */
};
/* One pvclock line of one vCPU. */
struct vm_clock_line {
	uint32_t vcpu;
	uint64_t from_min, from_max;
	struct pvclock pvclock;
	uint32_t sources;  /* bit 1 << enum vm_clock_source: who showed it */
	bool guest_agrees; /* the guest's own page held the same, bit for bit but the flags */
};
struct vm_clock_summary {
	size_t epochs, lines, vcpus;
	size_t vcpus_unsettled; /* whose sources disagree at the end */
	bool proven;            /* the newest epoch */
	bool contested;         /* any epoch that is kept */
	uint64_t agreed, contradicted;
	size_t pages, pages_differ; /* values the guest's own page had; those no source showed */
	bool kvmclock; /* proven, and the guest's own pages all agree: method "pvclock" */
};
/* How many are kept. */
size_t vm_clock_epochs(const struct vm_clock *c);
void vm_clock_summarise(const struct vm_clock *c, struct vm_clock_summary *out);
/* Oldest first; false past the last. */
bool vm_clock_epoch_get(const struct vm_clock *c, size_t i, struct vm_clock_epoch *out);
bool vm_clock_line_get(const struct vm_clock *c, size_t i, struct vm_clock_line *out);

#endif
