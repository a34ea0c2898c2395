/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the pairs of events that a user named (analyze/event/pairs.h) as slices from the first
 * event to the second. Pairs of different keys overlap, and slices of a track must not: each stage
 * has as many tracks as it needs, up to PAIR_LANES_MAX; pairs beyond them are left out and counted.
 */
#ifndef EXPORT_PAIR_SLICES_H
#define EXPORT_PAIR_SLICES_H

#include "host-collector/analyze/event/pairs.h"
#include "host-collector/export/boottime.h"
#include "host-collector/export/trace_file.h"
#include "host-collector/model/narrow.h"

enum { PAIR_LANES_MAX = 64 };

struct pair_lanes {
	uint32_t name;
	size_t n;
	uint64_t tracks[PAIR_LANES_MAX], ends[PAIR_LANES_MAX];
};

struct pair_slices {
	struct trace_file *file;
	struct boottime *boottime;
	struct model *model;
	const struct narrow *narrow;
	const struct event_choices *choices; /* with keys; NULL: no pairs. Borrowed. */
	struct pairs *pairs;
	uint64_t group; /* parent track, 0: none yet */
	uint64_t written, left_out;
	struct pair_lanes stages[EVENT_GROUPS_MAX];
};

/* The caller has set the members before `pairs`. Subscribes to the model. Returns 0 or -ENOMEM;
 * call pair_slices_fini() in both cases. */
int pair_slices_init(struct pair_slices *x);
void pair_slices_fini(struct pair_slices *x);
/* Writes the pairs that still wait. Returns 0 or -ENOMEM. */
int pair_slices_finish(struct pair_slices *x);

#endif
