/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the stall detector share (stall.h): stall_guest.c and stall_host.c take the
 * model's events, stall_pending.c hands out what has ended, stall.c owns it all.
 */
#ifndef STALL_STALL_INTERNAL_H
#define STALL_STALL_INTERNAL_H

#include "host-collector/analyze/stall/hints.h"
#include "host-collector/analyze/stall/overdue.h"
#include "host-collector/analyze/stall/spins.h"
#include "host-collector/analyze/stall/stall.h"
#include "host-collector/analyze/stall/waiters.h"
#include "host-collector/model/guest_cpu.h"

enum { STALL_RECENT_MAX = 8, STALL_CLAIMED_MAX = 4 };

/* A CPU has shown its tick after this many regular intervals. */
#define STALL_TICKS_WANTED   16
#define STALL_PROVE_EVERY_NS 1000000ll

struct stall_recent { /* a stretch long enough to claim a chain of the host's */
	struct host_ns begin, end;
	bool idle;
	/* What another CPU may have waited for: */
	enum guest_cpu_state kind;
	int32_t pid;
	uint32_t number;
	bool vector, ticks_stopped;
	struct host_ns denial; /* since when it denied something; its end: nothing */
};

/* Short waits since the first of them, and as of the end of the last (stall_storm.c). */
struct stall_window {
	struct stall_facts facts, told;
	struct host_ns stretch; /* the begin of the heavy stretch in which they lie; 0 none */
	unsigned pieces;
	bool open;
};

struct stall_claimed { /* a window that is told if the stretches in it are not */
	struct stall_facts facts;
	struct host_ns stretch;
};

struct stall_track {
	uint32_t vm;
	uint16_t cpu;
	bool task_known, in_interrupt;
	uint32_t ticks_seen;
	int64_t tick_interval_ns;
	struct host_ns last_tick;
	bool last_tick_busy;
	struct host_ns entered; /* the newest entry into an interrupt or softirq */
	uint64_t err_ns;
	struct stall_facts stretch, interrupt, chain;
	struct loss_balance balance; /* of the stretch's task */
	struct stall_facts proven;   /* a long stretch as of its newest event, if a loss cuts it */
	struct stall_facts
		doubted; /* the stretch as of a gap of one event, if the next event is no */
	struct stall_facts before; /* a long stretch as of the interrupt's begin, if that is long */
	struct stall_facts unseen; /* since such a gap: what is missing may be a softirq's entry */
	struct stall_facts before_unseen; /* as `before`, for `unseen` */
	struct stall_facts reading;       /* since the guest's clock was read last */
	bool reading_valid, chain_open, chain_after_unknown, proven_valid, doubt, doubt_proven,
		before_valid, unseen_valid, before_unseen_valid;
	struct stall_recent recent[STALL_RECENT_MAX];
	unsigned n_recent;
	struct facts_debt debt; /* by the newest stretch in which the host kept the vCPU */
	struct stall_window storm, older, newer;
	struct stall_claimed claimed[STALL_CLAIMED_MAX];
	unsigned n_claimed;
	struct host_ns peers_asked;  /* whether the other vCPUs are settled */
	struct stall_facts *pending; /* PENDING_MAX of them once one is needed */
	unsigned n_pending;
};

struct stall_vm {
	uint32_t vm;
	struct host_ns guest_last; /* the newest event of the guest */
	int64_t tick_interval_ns;  /* of the CPU that showed it last, for those that have not; 0 */
	struct waiters waiters;
	struct hints *hints;
	struct stall_track *tracks[VS_CPUS_MAX];
};

struct stall_detector {
	struct model *model;
	struct stall_options options;
	stall_found found;
	void *context;
	struct overdue *overdue;
	uint64_t dropped;
	size_t n_vms;
	struct stall_vm *vms[MODEL_VMS_MAX];
};

/* NULL if there are too many, or no memory. */
struct stall_vm *stall_vm_get(struct stall_detector *d, uint32_t vm);
struct stall_track *stall_track_get(struct stall_vm *v, uint16_t cpu);

/* Nothing joins this guest's times to the host's: they have no bound, or the guest was seen to do
 * things while its vCPUs were elsewhere. k: may be NULL. */
bool stall_unproven(const struct stall_detector *d, const struct stall_track *k);

/* ---- stall_pending.c ---- */

/* Adds what only the whole detector knows: the log, the hints, whether anything was denied. */
void stall_facts_complete(const struct stall_detector *d, const struct stall_vm *v,
			  struct stall_facts *f);
/* Completes and hands out. */
void stall_tell(struct stall_detector *d, const struct stall_vm *v, struct stall_facts *f);
/* Adds the open span of the vCPU if it follows what has been told. */
void stall_add_open_span(const struct stall_detector *d, struct stall_facts *f, uint32_t vcpu);
/* Hands out what is known in full by now; everything if `all`. */
void stall_pending_check(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
			 bool all);
void stall_pending_add(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
		       const struct stall_facts *f);
/* What the track knows of a long stretch that ends at `t`. */
void stall_stretch_seal(const struct stall_detector *d, const struct stall_vm *v,
			const struct stall_track *k, struct stall_facts *f, struct host_ns t);
/* What is kept of one that is sealed. */
struct stall_recent stall_recent_of(const struct stall_facts *f);
/* Seals it and has it handed out, if it is long enough. */
void stall_stretch_end(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
		       struct stall_facts *f, struct host_ns t);

/* ---- stall_peer.c ---- */

/* Which other CPU of the guest the stretch may have waited for. Facts with waits and samples. */
void stall_peer_fill(const struct stall_detector *d, const struct stall_vm *v,
		     struct stall_facts *f);
/* Have the guest's other CPUs been heard for as long as it takes them to let go? */
bool stall_peer_settled(const struct stall_vm *v, const struct stall_facts *f, struct host_ns now);

/* ---- stall_storm.c ---- */

/* A span of the vCPU, before the chain takes it. */
void stall_storm_span(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
		      const struct vcpu_span *span);
/* The chain is over. */
void stall_storm_piece(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k);
/* A stretch was told, or not (f->denied). */
void stall_storm_stretch(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
			 const struct stall_facts *f);
void stall_storm_finish(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k);

/* ---- the model's events: context is the detector ---- */

void stall_guest_instant(void *context, const struct guest_instant *i);
void stall_guest_span(void *context, const struct guest_span *span);
void stall_guest_interrupt(void *context, const struct guest_interrupt *i);
void stall_vcpu_span(void *context, const struct vcpu_span *span);
void stall_host_instant(void *context, const struct host_instant *i);
void stall_guest_clock(void *context, const struct guest_clock_reading *r);
/* The host gives the vCPU back: what kept it from the guest is told, if no stretch tells it. */
void stall_chain_end(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k);

#endif
