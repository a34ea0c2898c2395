/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How chain_open.c (a chain from its opening to its closing, and where its time goes), chain_vcpu.c
 * (the host's events), chain_guest.c (the guest's) and chain_lost.c (what is lost, what is over)
 * work together.
 */
#ifndef CHAIN_CHAIN_INTERNAL_H
#define CHAIN_CHAIN_INTERNAL_H

#include "host-collector/analyze/chain/chain_vcpu.h"

/* Events of a guest that show that it has had interrupts on for long enough to take one. */
enum { CHAIN_PROGRESS_ENOUGH = 2 };

/* A guest's stamp that may be wrong by as much says nothing of an interrupt's time. */
#define CHAIN_UNSURE_NS 10000000u
/* One that may be wrong by less than this says in which order things happened. */
#define CHAIN_ORDER_NS (CHAIN_UNSURE_NS / 4)

/*
 * The time that the vCPU had spent in each enum chain_where at `t`; CHAIN_WHERE_COUNT numbers. `t`
 * may be in the past: where the vCPU was is remembered for CHAIN_MOVES moves, and what lies before
 * them counts as CHAIN_NOWHERE.
 */
void chain_clock_read(const struct chain_vcpu *v, struct host_ns t, int64_t *clock_ns);
/* Adds what has passed since the last count to the chain's places; time in the guest is `guest`. */
void chain_places_count(const struct chain_vcpu *v, struct chain_open *o, struct host_ns t,
			enum chain_place guest);
/* The same up to a time at which the clocks stood at `clock_ns`. */
void chain_places_add(struct chain_open *o, const int64_t *clock_ns, enum chain_place guest);
/* Makes the places sum to begin..handler. */
void chain_places_settle(struct chain *c);

/* The point was seen at `t`. */
void chain_point_set(struct chain_open *o, enum chain_point p, struct host_ns t);
/* chain_vcpu.accepted and .served hold such indices. NULL: none. */
struct chain_open *chain_slot(struct chain_vcpu *v, uint8_t index);
uint8_t chain_slot_index(const struct chain_vcpu *v, const struct chain_open *o);
/* This vector has no interrupt any more that waits for its injection. */
void chain_accepted_clear(struct chain_vcpu *v, uint8_t vector);
/* Never NULL: the chain that has been quiet longest makes room. */
struct chain_open *chain_open_new(struct chain_vcpu *v, struct host_ns t, uint8_t vector,
				  uint32_t err_ns);
/* Tells the sink, as torn if so asked, if it is, or if its handler should have been seen. */
void chain_open_close(struct chain_vcpu *v, struct chain_open *o, bool torn);
/* Has the guest handled enough of what this task raised by this vector, at once, to be its? */
bool chain_raiser_known(struct chain_vcpu *v, int32_t pid, uint8_t vector);
/* May the pending `o` have been handled unseen, so that the next accept is another's? */
bool chain_may_be_over(const struct chain_vcpu *v, const struct chain_open *o);
/* Its handler ran unseen, and no injection of it is to come any more? */
bool chain_is_over(const struct chain_vcpu *v, const struct chain_open *o, struct host_ns now);
/* Has the guest had interrupts on since this one came, so that it is handled by now, or never? What
 * is missing from here on does not hide it. */
bool chain_is_settled(const struct chain_vcpu *v, const struct chain_open *o);

/* `o` has both its injection and its handler: so long it takes. */
void chain_delivery_learn(struct chain_vcpu *v, const struct chain_open *o);
/* One more is injected: is the handler that was seen rather its, or that of `served` after all? */
void chain_deferred_decide(struct chain_vcpu *v, const struct chain_open *served,
			   struct host_ns injected);
/* `o` has just begun or been injected: its handler may have been seen before, by the clocks. */
void chain_alone_join(struct chain_vcpu *v, struct chain_open *o);

#endif
