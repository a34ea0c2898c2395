/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collects the strip of time of each incident: what its vCPU and its guest CPU did, in a fixed
 * number of cells of equal length. A cell has the state that lasted longest in it. The text report
 * draws it.
 *
 * Invariant: the cost of a span that is shorter than the grain is one addition, because such spans
 * are summed before they enter the row's history (track.h).
 */
#ifndef SCENE_STRIP_H
#define SCENE_STRIP_H

#include "host-collector/analyze/stall/report.h"
#include "host-collector/model/model.h"

enum { STRIP_CELLS_MAX = 160, STRIPS_MAX = 1024 };

/* What the guest CPU did in a number of adjacent cells. */
struct strip_run {
	uint16_t first, n; /* cells */
	enum guest_cpu_state state;
	uint32_t number; /* of an interrupt or softirq, see interrupt_name() */
	bool vector;
	int32_t pid; /* current task */
	char comm[16];
};

struct strip {
	uint32_t vm, vcpu;
	struct host_ns begin, end;
	uint16_t n_cells, n_runs;
	uint8_t vcpu_states[STRIP_CELLS_MAX]; /* enum vcpu_state */
	struct strip_run *runs;               /* without gaps; none if the guest is unknown */
};

struct strips;

/* Subscribes to the model. Each strip has n_cells cells, at most STRIP_CELLS_MAX. Spans shorter
 * than grain_ns are summed. Feed the model no more after strips_free(), which accepts NULL. Returns
 * NULL on ENOMEM. */
struct strips *strips_new(struct model *m, unsigned n_cells, int64_t grain_ns);
void strips_free(struct strips *s);
/* Adds an incident when it was found (report_options.noticed). Beyond STRIPS_MAX, the shortest
 * incidents have no strip. */
void strips_incident(struct strips *s, const struct incident *i);
/* Completes all strips; call it after model_finish(). Returns 0, or -ENOMEM if something is
 * missing. */
int strips_finish(struct strips *s);
/* For live use, instead of strips_incident() and strips_finish(): replaces all strips by one of
 * n_cells cells for each of these incidents, with the spans that have arrived so far. Returns 0, or
 * -ENOMEM if something is missing. */
int strips_live(struct strips *s, const struct incident *incidents, size_t n, unsigned n_cells);
/* Returns the strip of an incident, or NULL. Borrowed. Only after strips_finish() or
 * strips_live(). */
const struct strip *strips_find(const struct strips *s, const struct incident *i);

#endif
