/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tree that a flame graph draws: frames under the frame that called them, children in the order
 * of their names. It holds one set of stacks, or two to be compared, each cut into slices of time.
 *
 * Compared, every frame has its weight before and after, its children's included, and a verdict:
 * does the difference stand out from how much the frame varies from slice to slice? With slices, by
 * Welch's t-test on the slices' rates; without (folded text), by a two-proportion z-test that takes
 * each unit of weight for one sample. Both two-sided, at FLAME_TREE_ALPHA over all frames together
 * (Holm). A difference below FLAME_TREE_LEAST of the whole is never significant.
 */
#ifndef FLAME_FLAME_TREE_H
#define FLAME_FLAME_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-collector/analyze/flame/folded.h"

#define FLAME_TREE_ALPHA 0.01
#define FLAME_TREE_LEAST 0.0001
enum { FLAME_TREE_SLICES = 20, FLAME_TREE_NODES_MAX = 1 << 19 };
#define FLAME_NONE UINT32_MAX

enum flame_side { FLAME_BEFORE, FLAME_AFTER };

struct flame_node {
	const char *name;
	enum folded_kind kind;
	bool waker;
	uint32_t parent, child, next; /* first child, next sibling; FLAME_NONE */
	double ns[2];                 /* by enum flame_side, children included; normalised */
	double self_ns[2];
	double width_ns; /* room for either side: the larger of each frame's own */
	double p;        /* compared: how likely chance alone is, 1 where it was not tested */
	bool significant;
};

struct flame_tree;

/* reversed: leaves become roots. NULL on ENOMEM. */
struct flame_tree *flame_tree_new(bool reversed);
void flame_tree_free(struct flame_tree *t);
/* Adds the stacks of a set as they are now, in all: of a set that grows while a recording is read,
 * once for each slice, in order; slice < FLAME_TREE_SLICES. 0, -ENOMEM. */
int flame_tree_add(struct flame_tree *t, enum flame_side side, size_t slice, struct folded *f);

struct flame_tree_options {
	bool compare;      /* two sides; else all is FLAME_AFTER */
	bool normalise;    /* to the total of the other; else to `seconds` where both are known */
	double seconds[2]; /* how long each was recorded, 0 unknown */
	size_t slices[2];  /* how many were added; 1: no test over time */
};
/* After the last addition. 0, -ENOMEM. */
int flame_tree_finish(struct flame_tree *t, const struct flame_tree_options *options);

/* Node 0 is the root of all, without a name. */
const struct flame_node *flame_tree_at(const struct flame_tree *t, uint32_t node);
size_t flame_tree_count(const struct flame_tree *t);
/* How many levels, the root not counted. */
size_t flame_tree_depth(const struct flame_tree *t);

#endif
