/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The clock that a guest's kernel prints before its log lines, by points that the agent measured.
 * It follows the guest's stream clock at a constant rate, but may have been stepped between two
 * points. A pause of the VM stops it if the guest takes it from kvmclock, and not if from the TSC:
 * the points before and after a pause tell which.
 */
#ifndef TIMELINE_PRINTK_CLOCK_H
#define TIMELINE_PRINTK_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

/* All zeros: nothing known. */
struct printk_clock {
	struct message_dmesg_point *points; /* in order of arrival, a bounded number */
	size_t n_points;
};

/* Stream times between which the VM was paused. */
struct printk_pause {
	uint64_t from, until;
};

/* Frees the points: nothing is known. */
void printk_clock_clear(struct printk_clock *c);
/* Takes a known point. 0 or -ENOMEM. */
int printk_clock_add(struct printk_clock *c, const struct message_dmesg_point *point);
/*
 * The printk clock at stream time `at`, and the bound: what the nearest points on both sides say.
 * pauses: in order of time. `hz`: the stream clock's nominal rate, used while fewer than two points
 * are known. A step beyond the newest point is not known. false without a point or rate.
 */
bool printk_clock_at(const struct printk_clock *c, const struct printk_pause *pauses,
		     size_t n_pauses, uint64_t hz, uint64_t at, uint64_t *dmesg_ns,
		     uint64_t *err_ns);

#endif
