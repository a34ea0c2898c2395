/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A flame graph as one SVG file, with what users of flamegraph.pl and inferno expect: a click
 * zooms, Ctrl-F or F3 searches by regular expression, Ctrl-I ignores case, hovering tells a frame's
 * weight, the URL holds the state. Without scripts (in an <img>) it is still the whole picture.
 *
 * Of a tree that compares, frames are as wide as the larger side, so that what vanished is shown,
 * too; every frame is coloured by its own difference, red for more and blue for less, and grey if
 * the difference is not significant.
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
/* 0 or -EINVAL. */
int flame_palette_parse(const char *text, enum flame_palette *palette);

struct flame_svg_options {
	const char *title, *subtitle; /* NULL: none */
	const char *unit;             /* of weights / 1000: "us", "samples" */
	bool compare;                 /* the tree has two sides */
	bool inverted;                /* roots on top */
	enum flame_palette palette;
	unsigned width;       /* pixels, 0: 1200 */
	double min_width;     /* pixels: frames narrower than that are left out; 0: 0.1 */
	const char *names[2]; /* compare: how the two sides are called */
};

/* 0 or -EIO. */
int flame_svg_write(const struct flame_tree *t, const struct flame_svg_options *o, FILE *out);

#endif
