/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declares what the files of the stall detector (stall.h) share. stall_guest.c and stall_host.c
 * take the model's events, stall_storm.c adds up short waits, stall_pending.c reports intervals
 * that have ended, stall_peer.c compares guest CPUs, stall.c owns the objects.
 *
 * A chain, in these files, is a sequence of abutting spans in which the host keeps a vCPU from the
 * guest (vcpu_span_denies). It has nothing to do with interrupt chains.
 */
#ifndef STALL_STALL_INTERNAL_H
#define STALL_STALL_INTERNAL_H

#include "host-collector/analyze/stall/hints.h"
#include "host-collector/analyze/stall/overdue.h"
#include "host-collector/analyze/stall/spins.h"
#include "host-collector/analyze/stall/stall.h"
#include "host-collector/analyze/stall/waiters.h"
#include "host-collector/model/guest_cpu.h"

enum { STALL_RECENT_MAX = 8, STALL_CLAIMED_MAX = 4, STALL_CHAIN_SPANS = 4 };

/* STALL_TICKS_WANTED: number of regular intervals after which the usual tick interval of a CPU is
 * known. STALL_PROVE_EVERY_NS: shortest time between two updates of stall_track.proven, and between
 * two checks of the other vCPUs. */
#define STALL_TICKS_WANTED 16
/* A wait shorter than this is no part of a storm, like most exits. */
#define STALL_PIECE_NS       50000ll
#define STALL_PROVE_EVERY_NS 1000000ll

struct stall_recent { /* a recent interval of at least the threshold */
	struct host_ns begin, end;
	bool idle;
	/* The activity for whose end another guest CPU may have waited. */
	enum guest_cpu_state kind;
	int32_t pid;
	uint32_t number;
	bool vector, ticks_stopped;
	struct host_ns denial; /* begin of its denied time; `end`: none */
};

/* A window of short waits (stall_storm.c): its facts so far, and its facts at the end of its last
 * wait. */
struct stall_window {
	struct stall_facts facts, reported;
	struct host_ns period; /* begin of the heavy interval that contains the waits; 0: none */
	unsigned pieces;
	bool open;
};

struct stall_claimed { /* a window that is reported if the intervals in it are not */
	struct stall_facts facts;
	struct host_ns period;
};

/* The state of one guest CPU. The members that every event reads or changes come first, so that
 * they are in few cache lines. With many vCPUs, the facts do not fit into a cache. */
struct stall_track {
	uint32_t vm;
	uint16_t cpu;
	bool task_known, in_interrupt;
	bool reading_valid, chain_open, chain_filled, chain_after_unknown, proven_valid, doubt,
		doubt_proven, before_valid, unseen_valid, before_unseen_valid;
	bool last_tick_busy;
	uint32_t ticks_seen;
	unsigned n_pending, n_recent, n_claimed, n_chain_spans;
	uint64_t err_ns;             /* bound on the error of its newest event */
	struct loss_balance balance; /* of the current task */
	struct host_ns entered;      /* the newest entry into an interrupt or softirq */
	struct host_ns last_tick;
	struct host_ns late_until; /* end of the newest interval of a late interrupt */
	int64_t tick_interval_ns;
	struct host_ns peers_asked;  /* time of the last check of the other vCPUs */
	struct stall_facts *pending; /* intervals that have ended; NULL before the first */
	/* The current run interval of a task, the current outermost interrupt, the current chain.
	 */
	struct stall_facts period, interrupt, chain;
	struct stall_facts proven;  /* `period` up to a recent event, used if a loss ends it */
	struct stall_facts doubted; /* `period` up to a short gap, used if the gap hid a switch */
	struct stall_facts before;  /* `period` up to the begin of `interrupt` */
	struct stall_facts unseen;  /* since a short gap, which may hide the entry of a softirq */
	struct stall_facts before_unseen; /* as `before`, for `unseen` */
	struct stall_facts reading;       /* since the newest reading of the guest's clock */
	struct stall_recent recent[STALL_RECENT_MAX];
	struct facts_debt debt; /* from the newest run interval in which the host kept the vCPU */
	struct stall_window storm, older, newer;
	struct host_ns storm_from; /* waits before it lie in an interval that was reported */
	struct stall_claimed claimed[STALL_CLAIMED_MAX];
	/* Most chains are an exit that the host handles at once. Such a chain has no effect, so its
	 * spans wait here. They fill the facts of `chain` only if the chain becomes longer. Until
	 * then (chain_filled is false), only begin, end and cut of `chain` are valid. */
	struct vcpu_span chain_spans[STALL_CHAIN_SPANS];
};

struct stall_vm {
	uint32_t vm;
	struct host_ns guest_last; /* the newest event of the guest */
	int64_t tick_interval_ns;  /* usual one of some CPU, for CPUs without one; 0: unknown */
	struct waiters waiters;
	struct hints *hints;
	size_t tracks_end; /* 1 + the highest index of a track */
	struct stall_track *tracks[VS_CPUS_MAX];
};

struct stall_detector {
	struct model *model;
	struct event_set host_types; /* hints_host_types() */
	struct stall_options options;
	stall_found found;
	void *context;
	struct overdue *overdue;
	uint64_t dropped;
	size_t n_vms;
	struct stall_vm *vms[MODEL_VMS_MAX];
	struct stall_vm *known[MODEL_VMS_MAX]; /* found last, by vm % MODEL_VMS_MAX; NULL: none */
};

/* stall_vm_get() and stall_track_get() find or add a VM, a track. They return NULL if there are too
 * many VMs or memory ran out. stall_vm_search() and stall_track_new() are their slow paths, which
 * most events do not take. */
struct stall_vm *stall_vm_search(struct stall_detector *d, uint32_t vm);
struct stall_track *stall_track_new(struct stall_vm *v, uint16_t cpu);

static inline struct stall_vm *stall_vm_get(struct stall_detector *d, uint32_t vm)
{
	struct stall_vm *known = d->known[vm % MODEL_VMS_MAX];

	return known && known->vm == vm ? known : stall_vm_search(d, vm);
}

static inline struct stall_track *stall_track_get(struct stall_vm *v, uint16_t cpu)
{
	return v->tracks[cpu] ? v->tracks[cpu] : stall_track_new(v, cpu);
}

/* Returns true if the guest's times cannot be joined to the host's: their error has no bound, or
 * the guest emitted events while its vCPUs were not in the guest. Returns false if k is NULL. */
bool stall_unproven(const struct stall_detector *d, const struct stall_track *k);

/* ---- stall_pending.c ---- */

/* Completes the facts after the last span: log, samples, hints, interrupts, peers, `denied`. */
void stall_facts_complete(const struct stall_detector *d, const struct stall_vm *v,
			  struct stall_facts *f);
/* Completes the facts and reports them if something was denied, or if options.all is set. */
void stall_emit(struct stall_detector *d, const struct stall_vm *v, struct stall_facts *f);
/* Adds the vCPU's open span if all spans before it were delivered. */
void stall_add_open_span(const struct stall_detector *d, struct stall_facts *f, uint32_t vcpu);
/* Reports the pending intervals whose facts are complete; all pending ones if `all`. */
void stall_pending_check(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
			 bool all);
/* Queues an interval that has ended. Counts it in d->dropped if memory ran out. */
void stall_pending_add(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
		       const struct stall_facts *f);
/* Ends the facts at `t` and adds what the track has: threshold, error, tick interval, waiters. */
void stall_period_seal(const struct stall_detector *d, const struct stall_vm *v,
		       const struct stall_track *k, struct stall_facts *f, struct host_ns t);
/* Returns the summary of sealed facts that stall_track.recent keeps. */
struct stall_recent stall_recent_of(const struct stall_facts *f);
/* Seals an interval that has at least the threshold at `t` and adds it to `recent`. Queues it
 * unless the guest CPU idled: denials of an idle CPU are reported as chains. */
void stall_period_keep(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
		       struct stall_facts *f, struct host_ns t);

/* Does the same if the interval has at least the threshold, which very few have. */
static inline void stall_period_end(struct stall_detector *d, const struct stall_vm *v,
				    struct stall_track *k, struct stall_facts *f, struct host_ns t)
{
	if (t.ns - f->begin.ns >= d->options.than_ns)
		stall_period_keep(d, v, k, f, t);
}

/* ---- stall_peer.c ---- */

/* Fills f->guest_peer. `waits` and `sampled` must be filled. */
void stall_peer_fill(const struct stall_detector *d, const struct stall_vm *v,
		     struct stall_facts *f);
/* Returns true if no other CPU of the guest has a long open run interval, or if 10 ms have passed
 * since the end of `f`. */
bool stall_peer_settled(const struct stall_vm *v, const struct stall_facts *f, struct host_ns now);

/* ---- stall_storm.c ---- */

/* Takes a span of the vCPU. Call it before the span is added to k->chain. */
void stall_storm_span(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
		      const struct vcpu_span *span);
/* Adds k->chain, which has ended, to the windows, or ends the windows. */
void stall_storm_piece(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k);
/* Takes an interval that was judged; NULL: none. If it was reported (f->denied), drops the windows
 * that overlap it. Reports the claimed windows whose intervals were not reported. */
void stall_storm_period(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
			const struct stall_facts *f);
/* Ends the windows. */
void stall_storm_finish(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k);

/* ---- the model's events: context is the detector ---- */

void stall_guest_instant(void *context, const struct guest_instant *i);
void stall_guest_span(void *context, const struct guest_span *span);
void stall_guest_interrupt(void *context, const struct guest_interrupt *i);
void stall_vcpu_span(void *context, const struct vcpu_span *span);
void stall_host_instant(void *context, const struct host_instant *i);
void stall_guest_clock(void *context, const struct guest_clock_reading *r);
/* Fills the facts of k->chain, which is open, with the spans so far. */
void stall_chain_fill(struct stall_track *k);
/* Ends k->chain, and reports it if it has at least the threshold and lies in no interval that is
 * reported. */
void stall_chain_end(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k);

#endif
