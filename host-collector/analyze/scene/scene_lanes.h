/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the newest events that the user chose (proto/user_event.h) and the newest pairs, for the
 * timelines. Each vCPU has a lane for each event and for each pair. Each VM has further lanes for
 * those that concern no vCPU.
 *
 * A scene copies the marks before its incident from here and gets later ones as they come. It holds
 * a bounded number of marks per lane: if there are more, those that begin in the same column of
 * time are folded into the longest one, which then holds their number and their total length.
 */
#ifndef SCENE_SCENE_LANES_H
#define SCENE_SCENE_LANES_H

#include "host-collector/analyze/scene/scene.h"
#include "proto/user_event.h"

enum {
	LANES_MAX = 256,  /* marks of further lanes are counted */
	LANE_KEPT = 2048, /* newest marks of a lane */
	LANE_FOLDED = 512 /* columns of a lane's scene, if it has more marks than it holds */
};

struct lane {
	struct lane_key key;
	char name[LANE_NAME_BYTES];
	struct lane_mark *ring; /* LANE_KEPT */
	uint64_t n;             /* marks since lanes_init() */
};

struct lanes {
	struct model *model;
	struct user_hits *hits; /* NULL before the first */
	/* Gets each mark after it was kept. */
	void (*take)(void *context, const struct lane *lane, const struct lane_mark *mark);
	void *context;
	size_t n, at; /* at: the lane that was asked for last */
	struct lane all[LANES_MAX];
	uint64_t left_out; /* marks of lanes beyond LANES_MAX */
	int error;         /* -ENOMEM if something is missing */
};

void lanes_fini(struct lanes *l);
/* Takes an event of a stream; only those that a user chose, and LOST, count. */
void lanes_event(struct lanes *l, uint32_t source, const struct vs_event *e, struct host_ns t,
		 uint32_t err_ns);
/* Takes the events whose last records did not come. */
void lanes_finish(struct lanes *l);
/* Keeps a mark. `name` is not escaped. */
void lanes_add(struct lanes *l, const struct lane_key *key, const char *name,
	       const struct lane_mark *mark);

/* Copies the kept marks of the scene's VM and time. Returns 0 or -ENOMEM. */
int scene_lanes_gather(const struct lanes *l, struct scene *scene);
/* Adds a mark that came later, if it is of the scene's VM and time. Returns 0 or -ENOMEM. */
int scene_lanes_add(struct scene *scene, const struct lane *lane, const struct lane_mark *mark);
/* Removes the pairs with more doubt than accepted[number], folds what is left to `marks_max` marks
 * of each lane, and sorts them by begin. */
void scene_lanes_finish(struct scene *scene, const uint8_t *accepted, size_t marks_max);
void scene_lanes_fini(struct scene *scene);

#endif
