/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads weighted stacks for `vcpuscope flame`, from a recording or from folded text. */
#ifndef CLI_FLAME_READ_H
#define CLI_FLAME_READ_H

#include "host-collector/analyze/flame/flame.h"
#include "host-collector/engine/pipeline.h"
#include "proto/recording.h"

struct flame_reading {
	struct model *model; /* NULL for folded text, as are the next two */
	struct pipeline *pipeline;
	struct flame *flame;
	struct folded *text;
	struct recording_info info;
	bool guest;     /* the recording has events of a guest */
	double seconds; /* length of the recording; 0: unknown */
	size_t slices;  /* number of calls of `take` */
};

/* Divides a recording into `count` equal slices. take() is called at the end of each slice, in
 * order, with all stacks so far; a recording that is too short has fewer slices. Folded text is one
 * slice. take() returns 0, or -errno, which ends the reading. */
struct flame_slices {
	size_t count;
	int (*take)(void *context, size_t slice, struct folded *so_far);
	void *context;
};

/* Returns whether the path has a suffix of folded text (.folded, .collapsed, .txt). */
bool flame_is_text(const char *path);
/* Reads `path`. slices: may be NULL. Returns 0, or -errno with one line in `why`. The caller calls
 * flame_reading_end() in both cases. */
int flame_read(const char *path, const struct flame_options *o, const struct flame_slices *slices,
	       struct flame_reading *r, char *why, size_t why_bytes);
void flame_reading_end(struct flame_reading *r);
struct folded *flame_reading_stacks(const struct flame_reading *r);

#endif
