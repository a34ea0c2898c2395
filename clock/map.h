/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Converts between host TSC, guest TSC and kvmclock of one vCPU with the clock parameters in
 * force. A new epoch begins when the value of a parameter changes: KVM_SET_CLOCK, a new TSC
 * offset, a pause, a migration, or the master clock going on or off. KVM repeats the same values
 * every 300 s; a repetition begins no epoch. Without the master clock each vCPU has its own
 * kvmclock line, so each vCPU has its own map.
 *
 * A conversion tries the newest epoch, then does a binary search, and uses integer arithmetic
 * only. It allocates nothing. Times before the first epoch are converted with its parameters: a
 * collector that attached late has no others.
 */
#ifndef CLOCK_MAP_H
#define CLOCK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/pvclock.h"
#include "clock/tsc_scaling.h"
#include "clock/types.h"

enum { CLOCK_MAP_EPOCHS_MAX = 4096 }; /* then the oldest is dropped: a guest can cause new ones */

struct clock_params {
	struct tsc_scaling scaling;
	bool has_pvclock;
	struct pvclock pvclock;
};

struct clock_map;

struct clock_map *clock_map_new(void); /* returns NULL if out of memory */
void clock_map_free(struct clock_map *m);
/*
 * Adds parameters that are in force from host TSC `from` on. Returns 0 if they already are, 1 if
 * they begin an epoch, -EINVAL (invalid, or older than the newest epoch) or -ENOMEM.
 */
int clock_map_push(struct clock_map *m, struct host_tsc from, const struct clock_params *params);

/* Returns the number of stored epochs. */
size_t clock_map_n_epochs(const struct clock_map *m);
/* Returns the parameters of epoch i, borrowed until the next push. `from` may be NULL. */
const struct clock_params *clock_map_epoch(const struct clock_map *m, size_t i,
					   struct host_tsc *from);

/* Convert host TSC exactly. Return false if the map is empty, or for kvmclock if the epoch has no
 * pvclock parameters. */
bool clock_map_guest_tsc(const struct clock_map *m, struct host_tsc host, struct guest_tsc *out);
bool clock_map_kvmclock(const struct clock_map *m, struct host_tsc host, struct kvmclock_ns *out);

/*
 * Compute the host TSC at which the guest read a value: it lies within [*first, *first +
 * *err_ticks]. If the clock was set back, the newest epoch that passed the value applies. If a
 * jump skipped the value, the epoch before the jump applies, and the error includes the distance
 * of the result from the jump. Return false if no epoch has this clock, or if the result exceeds
 * 2^64.
 */
bool clock_map_from_guest_tsc(const struct clock_map *m, struct guest_tsc guest,
			      struct host_tsc *first, uint64_t *err_ticks);
bool clock_map_from_kvmclock(const struct clock_map *m, struct kvmclock_ns t,
			     struct host_tsc *first, uint64_t *err_ticks);

/* Computes the host TSC at which kvmclock reads t under one set of parameters. Results as above. */
bool clock_params_from_kvmclock(const struct clock_params *p, struct kvmclock_ns t,
				struct host_tsc *first, uint64_t *err_ticks);

#endif
