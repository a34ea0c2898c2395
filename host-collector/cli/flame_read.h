/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads weighted stacks, for `vcpuscope flame`: of a recording, or from folded text. */
#ifndef CLI_FLAME_READ_H
#define CLI_FLAME_READ_H

#include "host-collector/analyze/flame/flame.h"
#include "host-collector/engine/pipeline.h"
#include "proto/recording.h"

struct flame_reading {
	struct model *model; /* NULL of folded text, as are the next two */
	struct pipeline *pipeline;
	struct flame *flame;
	struct folded *text;
	struct recording_info info;
	bool guest;     /* it has events of one */
	double seconds; /* that were recorded, 0 unknown */
	size_t slices;  /* that `slice` was called for */
};

/* Called at the end of each of `count` equal slices of the recording, in order, with the stacks so
 * far; once for folded text. 0, or -errno, which ends the reading. */
struct flame_slices {
	size_t count;
	int (*take)(void *context, size_t slice, struct folded *so_far);
	void *context;
};

/* Is this folded text, by its name (.folded, .collapsed, .txt)? */
bool flame_is_text(const char *path);
/* slices: NULL none. 0, or -errno with one line in `why`. The caller ends the reading either way.
 */
int flame_read(const char *path, const struct flame_options *o, const struct flame_slices *slices,
	       struct flame_reading *r, char *why, size_t why_bytes);
void flame_reading_end(struct flame_reading *r);
struct folded *flame_reading_stacks(const struct flame_reading *r);

#endif
