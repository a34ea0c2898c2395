/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The intervals in which a VM was stopped, as QEMU reported them. No guest event can happen in such
 * an interval. Under KVM a pause stops the clock that stamps the guest's events, but not the
 * guest's TSC. So the agent's conversion between the two is uncertain by the length of the pause,
 * and may place an event inside the pause.
 */
#ifndef TIMELINE_STANDSTILL_H
#define TIMELINE_STANDSTILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"

enum { STANDSTILLS_MAX = 64 };

/* Must be all zero at first. */
struct standstills {
	struct standstill {
		struct host_tsc begin, end;
	} spans[STANDSTILLS_MAX]; /* ring of the newest intervals */
	size_t n;                 /* total number of intervals that ended */
	struct host_tsc since;
	bool still;
};

/* Returns the number of intervals in `spans`. */
static inline size_t standstills_kept(const struct standstills *s)
{
	return s->n < STANDSTILLS_MAX ? s->n : STANDSTILLS_MAX;
}
/* Notes that the VM was stopped (`stops`) or continued at host TSC `at`. Call it in the order in
 * which QEMU reported. */
void standstills_note(struct standstills *s, struct host_tsc at, bool stops);
/* Moves a time that lies inside a standstill to the nearer edge, if its error reaches that edge,
 * and increases *err_ticks by the distance. A time whose error does not reach an edge is not moved.
 */
void standstills_evade(const struct standstills *s, struct host_tsc *t, uint64_t *err_ticks);

#endif
