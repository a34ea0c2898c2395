/* SPDX-License-Identifier: GPL-2.0-only */
/* Replays a recording through a pipeline: once for its clocks, once for its events. */
#ifndef ENGINE_REPLAY_H
#define ENGINE_REPLAY_H

#include "host-collector/engine/pipeline.h"
#include "proto/recording.h"

/*
 * Replays the recording at `path` and finishes the pipeline, which must be new and not live.
 * Returns 0 and *info, or -errno and one line in `why` that states what failed.
 */
int replay_run(struct pipeline *p, const char *path, struct recording_info *info, char *why,
	       size_t why_bytes);

#endif
