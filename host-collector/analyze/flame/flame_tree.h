/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Builds the tree that a flame graph draws: each frame below its caller, children sorted by name.
 * The tree holds one set of stacks, or two sets to compare, each divided into slices of time.
 *
 * In a comparison, each frame has its weight before and after, including its children, and a test:
 * does the difference exceed the variation between slices? With slices, the test is Welch's t-test
 * on the rates of the slices. Without slices (folded text), it is a two-proportion z-test that
 * takes each unit of weight as one sample. Both are two-sided, at level FLAME_TREE_ALPHA over all
 * frames together (Holm's correction). A difference below FLAME_TREE_LEAST of the whole is never
 * significant.
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
	uint32_t parent, child, next; /* first child, next sibling; FLAME_NONE: none */
	double ns[2];                 /* by enum flame_side, including children; normalised */
	double self_ns[2];
	double width_ns;    /* width that both sides need, ns: the larger self_ns, summed over the
			       frame and its descendants */
	unsigned slices[2]; /* number of slices of each side in which the frame has time */
	double p;           /* p-value of a comparison, 1 if not tested */
	bool significant;
};

struct flame_tree;

/* Allocates an empty tree. `reversed`: leaves become roots. Returns NULL on ENOMEM. */
struct flame_tree *flame_tree_new(bool reversed);
void flame_tree_free(struct flame_tree *t);
/* Adds the stacks of a set with their weights so far. For a set that grows while a recording is
 * read, call it once for each slice, in order; slice < FLAME_TREE_SLICES. Returns 0 or -ENOMEM. */
int flame_tree_add(struct flame_tree *t, enum flame_side side, size_t slice, struct folded *f);

struct flame_tree_options {
	bool compare; /* two sides; else all is FLAME_AFTER */
	/* Scale to the total of the other side; else to `seconds` if both are known. */
	bool normalise;
	double seconds[2]; /* recorded time of each side; 0: unknown */
	size_t slices[2];  /* slices that were added; 1: no test over time */
};
/* Computes the weights and tests; call it after the last addition. Returns 0 or -ENOMEM. */
int flame_tree_finish(struct flame_tree *t, const struct flame_tree_options *options);

/* Returns a node. Node 0 is the root of all and has no name. */
const struct flame_node *flame_tree_at(const struct flame_tree *t, uint32_t node);

#endif
