/* SPDX-License-Identifier: GPL-2.0-only */
/* What `vcpuscope flame` makes of stacks that it has read: folded text, a graph, a difference. */
#ifndef CLI_FLAME_DRAW_H
#define CLI_FLAME_DRAW_H

#include "host-collector/cli/flame_read.h"
#include "host-collector/view/flame_svg.h"

/* What the user asked for; all borrowed. */
struct flame_look {
	const char *title, *colors, *min_width; /* NULL: by the kind of graph */
	uint64_t width;
	bool inverted, reverse, normalise;
};

/* 0, or -EINVAL with one line in `why`. */
int flame_look_check(const struct flame_look *look, char *why, size_t why_bytes);
/* A graph of one set. `name`: what it is of. 0 or -errno. */
int flame_draw(struct folded *f, enum flame_kind kind, const char *name,
	       const struct flame_look *look, FILE *out);
/* Reads both and draws the difference. 0, or -errno with one line in `why`. */
int flame_draw_difference(const char *before, const char *after, const struct flame_options *o,
			  const struct flame_look *look, FILE *out, char *why, size_t why_bytes);

#endif
