/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the history of one row of a timeline (a vCPU, a guest CPU or a pCPU) in bounded memory. A
 * piece is one span, or several spans merged into one. The newest pieces are single spans. Older
 * ones are merged until each lasts 1 ms, then 32 ms; the oldest are discarded. A piece that is that
 * long by itself is never merged. A merged piece holds the share of each state.
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
	/* The owner of the row defines, for each state, the meaning of the next three members. */
	int32_t pid; /* a task; 0: none */
	uint32_t number;
	uint16_t where;
	uint8_t state; /* the state that lasted longest */
	bool merged;
	uint8_t share[TRACK_STATES]; /* only if merged: share of each state, of 255 */
};

/* Pieces that are being merged into one. All zero is empty. */
struct track_merge {
	struct track_piece longest;
	struct host_ns begin;
	int64_t ns, longest_ns, state_ns[TRACK_STATES];
	unsigned n;
};

struct track_tier {
	struct track_piece *pieces; /* a ring */
	size_t first, n, capacity;
	struct track_merge merge; /* the piece that is being merged for this tier */
};

/* All zero is an empty track. */
struct track {
	struct track_tier tiers[TRACK_TIERS];
	bool forgot; /* older pieces were discarded */
};

/* Adds a piece. Pieces come in order of begin; state < TRACK_STATES. Returns 0, or -ENOMEM if
 * the piece is lost. */
int track_add(struct track *t, const struct track_piece *piece);
void track_fini(struct track *t);

/* Returns the length below which pieces as old as `since` are merged, ns; 0: none is merged. */
int64_t track_grain_ns(const struct track *t, struct host_ns since);
/* Calls `take` for each piece that overlaps from..until, cut to that interval, oldest first. */
void track_each(const struct track *t, struct host_ns from, struct host_ns until,
		void (*take)(void *context, const struct track_piece *piece), void *context);

/* Merges pieces shorter than `grain_ns` with their neighbours, in place. Returns the number of
 * pieces left. */
size_t track_thin(struct track_piece *pieces, size_t n, int64_t grain_ns);

#endif
