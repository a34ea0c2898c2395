/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Draws the stacks that `vcpuscope flame` read: a flame graph of one set, or the difference of two.
 */
#ifndef CLI_FLAME_DRAW_H
#define CLI_FLAME_DRAW_H

#include "host-collector/cli/flame_read.h"
#include "host-collector/view/flame_svg.h"

/* The user's choices; borrowed. */
struct flame_look {
	const char *title, *colors, *min_width; /* NULL: depends on the kind of graph */
	uint64_t width;
	bool inverted, reverse, normalise;
};

/* Checks width and min_width. Returns 0, or -EINVAL with one line in `why`. */
int flame_look_check(const struct flame_look *look, char *why, size_t why_bytes);
/* Draws one set of stacks as SVG. name: path of the recording, shown as the subtitle. Returns 0 or
 * -errno. */
int flame_draw(struct folded *f, enum flame_kind kind, const char *name,
	       const struct flame_look *look, FILE *out);
/* Reads two sets of stacks and draws their difference as SVG. o: of either set; they differ in
 * `time` only. Returns 0, or -errno with one line in `why`. */
int flame_draw_difference(const char *before, const char *after, const struct flame_options o[2],
			  const struct flame_look *look, FILE *out, char *why, size_t why_bytes);

#endif
