/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests the guest's clock against the host's events. A guest's kernel can record an event only
 * while its vCPU is in the guest. So each guest event must lie, within the errors of both clocks,
 * between a VM-entry of its vCPU and the next VM-exit. Without KVM's events, it must lie between
 * the times at which the vCPU thread gets and leaves a pCPU.
 *
 * If the host missed one short return of the vCPU, any number of guest events may lie in it. So
 * violations close to each other count as one piece of evidence against the clock.
 */
#ifndef MODEL_PRESENCE_H
#define MODEL_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/audit.h"
#include "clock/types.h"

enum {
	PRESENCE_WAITING = 64,
	PRESENCE_WINDOW = 65536,
	PRESENCE_PIECE_NS = 4000000, /* the time slice of a vCPU on a busy pCPU */
};

struct presence_count {
	uint64_t pairs;      /* guest events that could be tested */
	uint64_t violations; /* events recorded while the vCPU certainly was not in the guest */
	uint64_t pieces;     /* pieces of evidence in these violations */
	struct audit recent; /* pairs, and pieces as violations */
	int64_t worst_ns;    /* the largest violation, beyond the errors of both clocks */
};

/* The state of one vCPU. Must be all zero at first. */
struct presence {
	bool known, away;
	struct host_ns left_until; /* if away: the latest time at which it can have left */
	unsigned n;
	struct { /* events that arrived while it was away: earliest and latest time */
		struct host_ns from, until;
	} waiting[PRESENCE_WAITING];
};

/* Record that the vCPU left or entered the guest, in time order. err_ns bounds `t`. */
void presence_left(struct presence *p, struct host_ns t, uint32_t err_ns);
void presence_back(struct presence *p, struct host_ns t, uint32_t err_ns,
		   struct presence_count *count);
/* Records that host events were lost: nothing is known until the next one. */
void presence_lost(struct presence *p);
/* Tests a guest event. An event that arrives while the vCPU is away is tested when it is back. At
 * most PRESENCE_WAITING events wait; further ones are not counted. */
void presence_event(struct presence *p, struct host_ns t, uint32_t err_ns,
		    struct presence_count *count);

#endif
