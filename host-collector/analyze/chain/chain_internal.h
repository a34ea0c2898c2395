/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions that the parts of the joiner share: chain_open.c opens and closes chains and divides
 * their time, chain_vcpu.c takes the host's events, chain_guest.c takes the guest's events,
 * chain_lost.c finds lost interrupts and chains that are over.
 */
#ifndef CHAIN_CHAIN_INTERNAL_H
#define CHAIN_CHAIN_INTERNAL_H

#include "host-collector/analyze/chain/chain_vcpu.h"

/* A pending interrupt counts as lost after this number of guest events that need interrupts on. */
enum { CHAIN_PROGRESS_ENOUGH = 2 };

/* A guest's stamp with at least this error is not used as the time of a handler. */
#define CHAIN_UNSURE_NS 10000000u
/* A guest's stamp with less than this error shows the order of events. */
#define CHAIN_ORDER_NS (CHAIN_UNSURE_NS / 4)

/*
 * Fills `clock_ns` (CHAIN_WHERE_COUNT numbers) with the time that the vCPU had spent in each enum
 * chain_where at `t`. `t` may be in the past: the newest CHAIN_MOVES moves are kept, the time
 * before them counts as CHAIN_NOWHERE.
 */
void chain_clock_read(const struct chain_vcpu *v, struct host_ns t, int64_t *clock_ns);
/* Adds the time since the last count, up to `t`, to the chain's places. Counts time in the guest as
 * `guest`. */
void chain_places_count(const struct chain_vcpu *v, struct chain_open *o, struct host_ns t,
			enum chain_place guest);
/* Does the same up to the time for which chain_clock_read returned `clock_ns`. */
void chain_places_add(struct chain_open *o, const int64_t *clock_ns, enum chain_place guest);
/* Adjusts the places so that they sum to the time from begin to handler. The clocks' error goes to
 * CHAIN_PLACE_DELIVERY as far as possible. */
void chain_places_settle(struct chain *c);

/* Records that the point was observed at `t`. */
void chain_point_set(struct chain_open *o, enum chain_point p, struct host_ns t);
/* Convert between a chain and its index in chain_vcpu.accepted and .served. Index 0: NULL. */
struct chain_open *chain_slot(struct chain_vcpu *v, uint8_t index);
uint8_t chain_slot_index(const struct chain_vcpu *v, const struct chain_open *o);
/* The chain's place may be taken by another one. */
void chain_place_free(struct chain_vcpu *v, const struct chain_open *o);
/* Records that no interrupt of this vector waits for its injection. */
void chain_accepted_clear(struct chain_vcpu *v, uint8_t vector);
/* Opens a chain that begins at `t`. Never returns NULL: if all slots are in use, closes the chain
 * whose newest point is oldest. */
struct chain_open *chain_open_new(struct chain_vcpu *v, struct host_ns t, uint8_t vector,
				  uint32_t err_ns);
/* Returns the sink of a listener, and sets the members of the chain that depend on the listener
 * (c.lost). */
const struct chain_sink *chain_listener_sink(const struct chain_vcpu *v, struct chain_open *o,
					     size_t listener);
/* Closes the chain and passes it to the sinks. It is incomplete if `torn`, if o->torn, or if it has
 * no handler although the guest's events cover its time. */
void chain_open_close(struct chain_vcpu *v, struct chain_open *o, bool torn);
/* Returns true if the guest handled the last four interrupts that this task raised with this vector
 * without delay. They then count as certain. */
bool chain_raiser_known(struct chain_vcpu *v, int32_t pid, uint8_t vector);
/* Returns true if the pending chain may have been handled without an event. The next accept then
 * opens a new chain. */
bool chain_may_be_over(const struct chain_vcpu *v, const struct chain_open *o);
/* Returns true if the chain's handler ran without an event and no injection of it can follow. */
bool chain_is_over(const struct chain_vcpu *v, const struct chain_open *o, struct host_ns now);
/* Returns true if the guest has had interrupts on since the chain began. The guest has then handled
 * the interrupt by now, or the interrupt is lost; later gaps cannot hide its handler. */
bool chain_is_settled(const struct chain_vcpu *v, const struct chain_open *o);

/* Updates the usual time from injection to handler from a chain that has both. */
void chain_delivery_learn(struct chain_vcpu *v, const struct chain_open *o);
/* Call it when the vector's next interrupt is injected, at `injected`. Joins a deferred handler to
 * `served` unless its delay after the new injection is closer to the usual delay. */
void chain_deferred_decide(struct chain_vcpu *v, const struct chain_open *served,
			   struct host_ns injected);
/* Joins `o`, which was just opened or injected, to a handler with an earlier stamp, if the clocks'
 * error allows it. */
void chain_alone_join(struct chain_vcpu *v, struct chain_open *o);

#endif
