/* SPDX-License-Identifier: GPL-2.0-only */
/* Replays a recording through a pipeline: once for its clocks, once for its events. */
#ifndef ENGINE_REPLAY_H
#define ENGINE_REPLAY_H

#include <stdbool.h>

#include "host-collector/engine/pipeline.h"
#include "proto/recording.h"

/*
 * Replays the recording at `path` and finishes the pipeline, which must be new and not live.
 * Returns 0 and *info, or -errno and one line in `why` that states what failed.
 */
int replay_run(struct pipeline *p, const char *path, struct recording_info *info, char *why,
	       size_t why_bytes);

/* Does the same, but ends early with -ECANCELED once stop(context) returns true. The last events
 * may be missing then. Calls `stop` for each frame, also on another thread. */
int replay_until(struct pipeline *p, const char *path, bool (*stop)(void *context), void *context,
		 struct recording_info *info, char *why, size_t why_bytes);

/* A replay for commands that show verdicts. A reading may find late that the recording contradicts
 * a guest's times, when earlier verdicts have already used these times. In this case the recording
 * is read again, and that guest's times count as unproven from the first event on
 * (model_guest_distrust). The states of vCPUs and the tables do not depend on this, so commands
 * without verdicts use replay_run(). */
struct replay {
	struct model *model;
	struct pipeline *pipeline; /* valid before the first event */
	struct recording_info info;
};

struct replay_reader {
	/* Adds the analyses to a new model. Returns 0 or -errno. */
	int (*open)(void *context, struct model *m);
	/* Frees the analyses of the first reading. Its model is gone. */
	void (*close)(void *context);
	void *context;
};

/* Reads the recording once or twice. `r` must be all zero; end it with replay_end(), also after an
 * error. Returns 0, or -errno and one line in `why`; the analyses of the last reading remain. */
int replay_read(struct replay *r, const char *path, const struct replay_reader *reader, char *why,
		size_t why_bytes);
/* Frees the model and the pipeline. */
void replay_end(struct replay *r);

#endif
