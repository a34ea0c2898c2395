/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a VM stood still by QEMU's own word: no stamp of its guest lies inside. Under KVM a pause
 * stops the clock that stamps the guest's events and not its TSC, so that between two samples of
 * both the agent knows a stamp to +- the pause only, and may have put it there.
 */
#ifndef TIMELINE_STANDSTILL_H
#define TIMELINE_STANDSTILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"

enum { STANDSTILLS_MAX = 64 };

/* All zero: none yet. */
struct standstills {
	struct standstill {
		struct host_tsc begin, end;
	} spans[STANDSTILLS_MAX]; /* the newest, in a ring */
	size_t n;                 /* ever ended */
	struct host_tsc since;
	bool still;
};

/* How many spans are kept. */
static inline size_t standstills_kept(const struct standstills *s)
{
	return s->n < STANDSTILLS_MAX ? s->n : STANDSTILLS_MAX;
}
/* The VM was stopped at `at`, or (`stops` false) went on; in the order of QEMU's word. */
void standstills_note(struct standstills *s, struct host_tsc at, bool stops);
/* A stamp inside a standstill, known no better than to an edge of it, goes to the nearer edge that
 * its error reaches; *err_ticks grows by as much. */
void standstills_evade(const struct standstills *s, struct host_tsc *t, uint64_t *err_ticks);

#endif
