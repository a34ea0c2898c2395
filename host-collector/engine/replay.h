/* SPDX-License-Identifier: GPL-2.0-only */
/* Plays a recording through a pipeline: once for its clocks, once for its events. */
#ifndef ENGINE_REPLAY_H
#define ENGINE_REPLAY_H

#include "host-collector/engine/pipeline.h"
#include "proto/recording.h"

/*
 * p: fresh, not live. The pipeline is finished afterwards. 0 and *info, or -errno with one line in
 * `why` that says what is wrong and what to do.
 */
int replay_run(struct pipeline *p, const char *path, struct recording_info *info, char *why,
	       size_t why_bytes);

#endif
