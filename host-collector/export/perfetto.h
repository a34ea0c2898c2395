/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a recording as a trace for Perfetto (https://ui.perfetto.dev). The trace has one timeline,
 * the host's CLOCK_BOOTTIME. It shows the host's schedule, and the schedule of each VM as a
 * separate machine. The tracks of vCPU threads show states and exits. The trace also has the
 * guests' interrupts, arrows from injection to handler, and losses.
 *
 * The trace is written while the model is fed. The writer holds back events for at most
 * FLOW_HOLD_NS of the recording's time. docs/export.md describes what the trace shows, and on which
 * events that is based.
 */
#ifndef EXPORT_PERFETTO_H
#define EXPORT_PERFETTO_H

#include <stdio.h>

#include "host-collector/analyze/event/choices.h"
#include "host-collector/engine/pipeline.h"
#include "host-collector/model/narrow.h"

struct perfetto;

/* Subscribes to the model. The caller must not feed the model after perfetto_free(). *pipeline
 * feeds the model and has read the recording's clocks before the first event. All pointers are
 * borrowed. `narrow` selects VMs, vCPUs and the time; the host's schedule is written whole. pairs:
 * the events whose pairs are shown, with their keys; NULL: none. Returns NULL on ENOMEM. */
struct perfetto *perfetto_new(struct model *m, const struct pipeline *const *pipeline,
			      const struct narrow *narrow, const struct event_choices *pairs,
			      FILE *out);
void perfetto_free(struct perfetto *x);
/* Writes what was held back; call it after model_finish(). Returns 0, -ENOMEM, or -errno of a
 * write. */
int perfetto_finish(struct perfetto *x);

struct perfetto_summary {
	uint64_t bytes, flows;
	uint64_t contradicted;          /* arrows that are not drawn: see struct flows */
	uint64_t pairs, pairs_left_out; /* because too many overlap */
	uint64_t guest_events;          /* in schedules and among interrupts */
};
/* Returns the totals. Only after perfetto_finish(). */
void perfetto_summarise(const struct perfetto *x, struct perfetto_summary *out);
/* A guest CPU whose vCPU thread is known. */
struct perfetto_cpu {
	uint32_t vm; /* number of the machine in the trace */
	uint16_t cpu;
	int32_t tid;
};
/* Stores the i-th of these guest CPUs in *out. Returns false past the last. */
bool perfetto_cpu_get(const struct perfetto *x, size_t i, struct perfetto_cpu *out);

#endif
