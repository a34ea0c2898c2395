/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording as a trace for Perfetto (https://ui.perfetto.dev): one timeline, CLOCK_BOOTTIME of
 * the host, with the host's schedule, each VM's as a machine of its own, the vCPUs' states and
 * exits on their threads' tracks, the guests' interrupts, arrows from injection to handler, and
 * losses.
 *
 * Written while the model is being fed; what is kept back is bounded by time (FLOW_HOLD_NS) and by
 * PLACEMENT_WAITING_MAX events of a vCPU. docs/export.md says what is shown and what that rests on.
 */
#ifndef EXPORT_PERFETTO_H
#define EXPORT_PERFETTO_H

#include <stdio.h>

#include "host-collector/engine/pipeline.h"

struct perfetto;

/* Subscribes to the model, which must not be fed any more once this is freed. *pipeline: what feeds
 * it, which has learned the recording's clocks before the first event. All are borrowed. NULL on
 * ENOMEM. */
struct perfetto *perfetto_new(struct model *m, const struct pipeline *const *pipeline, FILE *out);
void perfetto_free(struct perfetto *x);
/* After model_finish: writes what was kept back. 0 or -errno of memory or of the file. */
int perfetto_finish(struct perfetto *x);

struct perfetto_summary {
	uint64_t bytes, flows;
	/* Guests' events in the schedule and among the interrupts; see placement.h. */
	uint64_t guest_events, moved, moved_beyond, worst_ns, uncovered;
};
/* After perfetto_finish(). */
void perfetto_summarise(const struct perfetto *x, struct perfetto_summary *out);
/* The i-th guest CPU whose vCPU's thread is known; false past the last. */
struct perfetto_cpu {
	uint32_t vm; /* the machine's number in the trace */
	uint16_t cpu;
	int32_t tid;
};
bool perfetto_cpu_get(const struct perfetto *x, size_t i, struct perfetto_cpu *out);

#endif
