/* SPDX-License-Identifier: GPL-2.0-only */
/* Gives a report builder the data of a pipeline about its sources: precision of clocks, losses, log
 * lines, reboots and wall time. */
#ifndef ENGINE_ACCOUNT_H
#define ENGINE_ACCOUNT_H

#include "host-collector/analyze/stall/builder.h"
#include "host-collector/engine/pipeline.h"

/* Gives `b` the current data of `p`, which replace those of an earlier call. damaged_bytes: bytes
 * of the recording that contain no valid frame. Returns 0 or -ENOMEM. */
int account_give(const struct pipeline *p, const struct model *m, uint64_t damaged_bytes,
		 struct report_builder *b);
/* Returns true if the recording, or what was received so far, contradicts the times of this guest.
 */
bool account_untrusted(const struct pipeline_source *s, const struct model *m);
/* Implements report_options.dmesg. `context` is a struct pipeline *const *, so that the pipeline
 * may be created later. */
bool account_dmesg(void *context, uint32_t vm, struct host_ns t, struct dmesg_time *out);

#endif
