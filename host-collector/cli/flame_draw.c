/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/flame_draw.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *title;
	enum flame_palette palette;
} kinds[FLAME_KIND_COUNT] = {
	[FLAME_ONCPU] = {"On-CPU Flame Graph", FLAME_PALETTE_HOT},
	[FLAME_OFFCPU] = {"Off-CPU Flame Graph", FLAME_PALETTE_IO},
	[FLAME_WAKEUP] = {"Wakeup Flame Graph", FLAME_PALETTE_WAKEUP},
	[FLAME_OFFWAKE] = {"Off-Wake Flame Graph", FLAME_PALETTE_CHAIN},
	[FLAME_WALL] = {"Wall Time, through the Boundary", FLAME_PALETTE_SIDES},
	[FLAME_EXITS] = {"VM-Exits Flame Graph", FLAME_PALETTE_HOT},
	[FLAME_LOOKS] = {"What Ran while the Condition Held", FLAME_PALETTE_HOT},
};

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* False: no number of pixels. */
static bool pixels_parse(const char *text, double *pixels)
{
	char *end;

	*pixels = strtod(text, &end);
	return end != text && !*end && *pixels >= 0 && *pixels <= 1000;
}

int flame_look_check(const struct flame_look *look, char *why, size_t why_bytes)
{
	double pixels;

	if (look->min_width && !pixels_parse(look->min_width, &pixels))
		snprintf(why, why_bytes,
			 "--minwidth %s: expected a number of pixels from 0 to 1000, such as 0.5",
			 look->min_width);
	else if (look->width && (look->width < 300 || look->width > 20000))
		snprintf(why, why_bytes, "--width %llu: expected 300 to 20000 pixels",
			 (unsigned long long)look->width);
	else
		return 0;
	return -EINVAL;
}

static struct flame_svg_options svg_options(const struct flame_look *look, enum flame_kind kind)
{
	struct flame_svg_options o = {.title = look->title,
				      .unit = "us",
				      .inverted = look->inverted,
				      .palette = kinds[kind].palette,
				      .width = (unsigned)look->width};

	if (look->min_width)
		pixels_parse(look->min_width, &o.min_width);
	if (look->colors)
		flame_palette_parse(look->colors, &o.palette);
	return o;
}

int flame_draw(struct folded *f, enum flame_kind kind, const char *name,
	       const struct flame_look *look, FILE *out)
{
	const struct flame_tree_options options = {.slices = {0, 1}};
	struct flame_svg_options svg = svg_options(look, kind);
	struct flame_tree *tree = flame_tree_new(look->reverse);
	int err = tree ? flame_tree_add(tree, FLAME_AFTER, 0, f) : -ENOMEM;

	if (!svg.title)
		svg.title = kinds[kind].title;
	svg.subtitle = file_name(name);
	if (!err)
		err = flame_tree_finish(tree, &options);
	if (!err)
		err = flame_svg_write(tree, &svg, out);
	flame_tree_free(tree);
	return err;
}

/* ---- difference ---- */

struct side {
	struct flame_tree *tree;
	enum flame_side side;
};

static int slice_take(void *context, size_t slice, struct folded *so_far)
{
	const struct side *s = context;

	return flame_tree_add(s->tree, s->side, slice, so_far);
}

int flame_draw_difference(const char *before, const char *after, const struct flame_options o[2],
			  const struct flame_look *look, FILE *out, char *why, size_t why_bytes)
{
	const char *const paths[] = {before, after};
	struct flame_tree_options options = {.compare = true, .normalise = look->normalise};
	struct flame_svg_options svg = svg_options(look, o->kind);
	struct flame_tree *tree = flame_tree_new(look->reverse);
	char subtitle[512];
	int err = tree ? 0 : -ENOMEM;

	for (int side = 0; side < 2 && !err; side++) {
		struct side context = {tree, (enum flame_side)side};
		const struct flame_slices slices = {FLAME_TREE_SLICES, slice_take, &context};
		struct flame_reading r;

		err = flame_read(paths[side], &o[side], &slices, &r, why, why_bytes);
		options.seconds[side] = r.seconds;
		options.slices[side] = r.slices;
		flame_reading_end(&r);
	}
	if (err)
		goto out;
	snprintf(why, why_bytes, "cannot be drawn");
	err = flame_tree_finish(tree, &options);
	snprintf(subtitle, sizeof(subtitle), "from %.100s to %.100s, %s; %s", file_name(before),
		 file_name(after),
		 look->normalise                                    ? "as shares of all"
		 : options.seconds[0] > 0 && options.seconds[1] > 0 ? "per second of recording"
								    : "as they are",
		 options.slices[0] > 1 && options.slices[1] > 1
			 ? "significant: Welch's t-test over slices of time, 1 % for all frames"
			 : "significant: two-proportion z-test, 1 % for all frames");
	svg.subtitle = subtitle;
	svg.compare = true;
	svg.sliced =
		options.slices[0] == FLAME_TREE_SLICES && options.slices[1] == FLAME_TREE_SLICES;
	if (!svg.title)
		svg.title = "Flame Graph Difference";
	if (!err)
		err = flame_svg_write(tree, &svg, out);
out:
	flame_tree_free(tree);
	return err;
}
