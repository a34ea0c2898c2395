/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The history of one row of a timeline (a vCPU, a guest CPU, a pCPU) in bounded memory: the newest
 * pieces as they were, older ones merged until each lasts 1 ms, then 32 ms; the oldest are gone.
 * A piece that is long enough by itself is never merged. A merged piece says which share of it
 * each state had.
 */
#ifndef SCENE_TRACK_H
#define SCENE_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"

enum { TRACK_STATES = 9, TRACK_TIERS = 3, TRACK_PIECES = 8192 };

struct track_piece {
	struct host_ns begin;
	int64_t ns;
	int32_t pid; /* of what fills it, 0 nobody; as is the rest, the row's owner knows what */
	uint32_t number; /* it means in which state */
	uint16_t where;
	uint8_t state; /* the one that lasted longest */
	bool merged;
	uint8_t share[TRACK_STATES]; /* if merged: of 255 */
};

/* Pieces added up into one. All zero is empty. */
struct track_merge {
	struct track_piece longest;
	struct host_ns begin;
	int64_t ns, longest_ns, state_ns[TRACK_STATES];
	unsigned n;
};

struct track_tier {
	struct track_piece *pieces; /* a ring */
	size_t first, n, capacity;
	struct track_merge merge; /* what is on its way into this tier */
};

/* All zero is an empty one. */
struct track {
	struct track_tier tiers[TRACK_TIERS];
	bool forgot; /* pieces older than those it holds */
};

/* In order of begin; state < TRACK_STATES. 0, or -ENOMEM: the piece is lost. */
int track_add(struct track *t, const struct track_piece *piece);
void track_fini(struct track *t);

/* The shortest time between two pieces that are kept apart for as far back as `since`; 0: all. */
int64_t track_grain_ns(const struct track *t, struct host_ns since);
/* Calls `take` for each piece that reaches into from..until, cut to it, oldest first. */
void track_each(const struct track *t, struct host_ns from, struct host_ns until,
		void (*take)(void *context, const struct track_piece *piece), void *context);

/* Merges pieces shorter than `grain_ns` with their neighbours, in place; the number left. */
size_t track_thin(struct track_piece *pieces, size_t n, int64_t grain_ns);

#endif
