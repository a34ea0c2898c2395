/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a flame graph as one SVG file with the controls of flamegraph.pl and inferno: a click
 * zooms, Ctrl-F or F3 searches by regular expression, Ctrl-I ignores case, hovering shows a frame's
 * weight, and the URL holds the state. Without scripts (in an <img>) it shows the whole graph.
 *
 * If the tree compares two sides, each frame is as wide as its larger side, so that frames which
 * vanished are shown, too. The colour of a frame shows its own difference: red for more, blue for
 * less, grey for a difference that is not significant.
 */
#ifndef VIEW_FLAME_SVG_H
#define VIEW_FLAME_SVG_H

#include <stdio.h>

#include "host-collector/analyze/flame/flame_tree.h"

/* X(NAME, "name", what its colours are for) */
#define FLAME_PALETTES(X)                                                                          \
	X(HOT, "hot", "time on a CPU")                                                             \
	X(IO, "io", "time spent waiting")                                                          \
	X(WAKEUP, "wakeup", "who woke")                                                            \
	X(CHAIN, "chain", "waiting in blue, who woke in aqua")                                     \
	X(MEM, "mem", "memory")                                                                    \
	X(SIDES, "sides", "guest, host, user and kernel apart")

enum flame_palette {
#define X(NAME, ...) FLAME_PALETTE_##NAME,
	FLAME_PALETTES(X)
#undef X
		FLAME_PALETTE_COUNT
};
/* Parses the name of a palette. Returns 0 or -EINVAL. */
int flame_palette_parse(const char *text, enum flame_palette *palette);

struct flame_svg_options {
	const char *title, *subtitle; /* NULL: none */
	const char *unit;             /* unit of weights / 1000: "us", "samples" */
	bool compare;                 /* the tree has two sides */
	bool sliced;                  /* compare: both sides have FLAME_TREE_SLICES slices */
	bool inverted;                /* roots are at the top */
	enum flame_palette palette;
	unsigned width;       /* pixels; 0: the window's, 1200 without scripts */
	double min_width;     /* narrowest frame that is drawn, pixels; 0: 0.1 */
	const char *names[2]; /* names of the two sides, if compare */
};

/* Writes the SVG file. Returns 0 or -EIO. */
int flame_svg_write(const struct flame_tree *t, const struct flame_svg_options *o, FILE *out);

#endif
