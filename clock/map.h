/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One vCPU's clocks over time: host TSC <-> guest TSC <-> kvmclock, by the parameters in force. An
 * epoch begins where a parameter's value changes (KVM_SET_CLOCK, a TSC offset write, a pause,
 * migration, master clock on or off); a repetition of the same values, as KVM sends every 300 s,
 * does not count. With the master clock off every vCPU has its own line, hence a map per vCPU.
 *
 * A conversion is a binary search over epochs (first the newest is tried) and integer arithmetic;
 * nothing is allocated. Before the first epoch its parameters are used: for a collector that
 * attached late they are all there is.
 */
#ifndef CLOCK_MAP_H
#define CLOCK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/pvclock.h"
#include "clock/tsc_scaling.h"
#include "clock/types.h"

enum { CLOCK_MAP_EPOCHS_MAX = 4096 }; /* the oldest give way: a guest can cause new ones */

struct clock_params {
	struct tsc_scaling scaling;
	bool has_pvclock;
	struct pvclock pvclock;
};

struct clock_map;

struct clock_map *clock_map_new(void); /* NULL on ENOMEM */
void clock_map_free(struct clock_map *m);
/*
 * These parameters are in force from host TSC `from` on. 0 if they already were, 1 if an epoch
 * begins, -EINVAL (not valid, or older than the newest epoch), -ENOMEM.
 */
int clock_map_push(struct clock_map *m, struct host_tsc from, const struct clock_params *params);

/* How many are kept, at most CLOCK_MAP_EPOCHS_MAX. */
size_t clock_map_n_epochs(const struct clock_map *m);
/* Borrowed until the next push. `from` may be NULL. */
const struct clock_params *clock_map_epoch(const struct clock_map *m, size_t i,
					   struct host_tsc *from);

/* Exact. false without an epoch (kvmclock: without pvclock parameters in that epoch). */
bool clock_map_guest_tsc(const struct clock_map *m, struct host_tsc host, struct guest_tsc *out);
bool clock_map_kvmclock(const struct clock_map *m, struct host_tsc host, struct kvmclock_ns *out);

/*
 * The host TSC when the guest read this value: it lies in [*first, *first + *err_ticks]. Of a
 * clock that was set back, the newest epoch that passed the value is meant. A value that a jump
 * left out is converted by the epoch before it, and the error says how far that is past the jump.
 * false if no epoch knows the clock, or the value is beyond 2^64.
 */
bool clock_map_from_guest_tsc(const struct clock_map *m, struct guest_tsc guest,
			      struct host_tsc *first, uint64_t *err_ticks);
bool clock_map_from_kvmclock(const struct clock_map *m, struct kvmclock_ns t,
			     struct host_tsc *first, uint64_t *err_ticks);

/* Host TSC at which kvmclock reads t under one set of parameters; as above. */
bool clock_params_from_kvmclock(const struct clock_params *p, struct kvmclock_ns t,
				struct host_tsc *first, uint64_t *err_ticks);

#endif
