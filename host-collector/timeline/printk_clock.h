/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The clock that a guest's kernel prints at the beginning of its log lines. The agent measures
 * points that relate it to the guest's stream clock. The printk clock runs at a constant rate
 * relative to the stream clock, but may have been stepped between two points. A pause of the VM
 * stops it if the guest derives it from kvmclock, and does not if the guest derives it from the
 * TSC. The points before and after a pause show which is the case.
 */
#ifndef TIMELINE_PRINTK_CLOCK_H
#define TIMELINE_PRINTK_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

/* All zero if nothing is known. */
struct printk_clock {
	/* In order of arrival. At most 1024: when full, every second point is removed. */
	struct message_dmesg_point *points;
	size_t n_points;
};

/* A pause of the VM, in stream time. */
struct printk_pause {
	uint64_t from, until;
};

/* Frees and forgets all points. */
void printk_clock_clear(struct printk_clock *c);
/* Adds a point whose `known` is set. Returns 0 or -ENOMEM. */
int printk_clock_add(struct printk_clock *c, const struct message_dmesg_point *point);
/*
 * Converts stream time `at` to printk time, with a bound that covers the results of the nearest
 * point before and the nearest point after it. `pauses` is sorted by time. `hz` is the nominal rate
 * of the stream clock, used while fewer than two points are known. A step after the newest point is
 * not detected. Returns false if there is no point or no rate.
 */
bool printk_clock_at(const struct printk_clock *c, const struct printk_pause *pauses,
		     size_t n_pauses, uint64_t hz, uint64_t at, uint64_t *dmesg_ns,
		     uint64_t *err_ns);

#endif
