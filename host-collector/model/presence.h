/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Causality across the boundary: a guest's kernel can only have recorded an event while its vCPU
 * was in the guest. So whatever interrupt, wake-up or switch a guest CPU tells of must lie, within
 * both clocks' errors, between an entry of its vCPU into the guest and the exit that follows;
 * without KVM's events, between the thread's getting a pCPU and its leaving it.
 *
 * If the host missed that a vCPU came back for a moment and left again, any number of events may
 * lie in that moment. So violations close to each other count as one piece of evidence against a
 * clock.
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
	PRESENCE_PIECE_NS = 4000000, /* the vCPU's turn on a busy pCPU */
};

struct presence_count {
	uint64_t pairs;      /* guest events that could be held against the host's */
	uint64_t violations; /* of those: recorded while the vCPU was certainly elsewhere */
	uint64_t pieces;     /* of evidence that they are */
	struct audit recent; /* pairs, and pieces as violations */
	int64_t worst_ns;    /* by how much the worst is off, its errors taken away */
};

/* Of one vCPU. All zero: nothing known. */
struct presence {
	bool known, away;
	struct host_ns left_until; /* away: the latest instant at which it can have left */
	unsigned n;
	struct { /* guest events that came when it had left: the earliest and latest they can be */
		struct host_ns from, until;
	} waiting[PRESENCE_WAITING];
};

/* Host events, in time order; err_ns bounds `t`. */
void presence_left(struct presence *p, struct host_ns t, uint32_t err_ns);
void presence_back(struct presence *p, struct host_ns t, uint32_t err_ns,
		   struct presence_count *count);
/* Host events are missing: nothing is known until the next. */
void presence_lost(struct presence *p);
/* A guest event. Those that come while the vCPU is away are judged when it is back; beyond
 * PRESENCE_WAITING of them the rest is not counted. */
void presence_event(struct presence *p, struct host_ns t, uint32_t err_ns,
		    struct presence_count *count);

#endif
