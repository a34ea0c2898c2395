/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes one page of metrics from the counters of analyses, pipeline and collector. */
#ifndef METRICS_METRICS_PAGE_H
#define METRICS_METRICS_PAGE_H

#include <stdio.h>

#include "host-collector/metrics/metrics.h"
#include "host-collector/engine/pipeline.h"

/* The part of the page that one pipeline provides. */
struct metrics_part {
	const char *name; /* name of its only VM; NULL: the name that the VMM was started with */
	const struct metrics *metrics;
	const struct pipeline *pipeline;
	const struct metrics_pair *pairs; /* of its only VM */
	size_t n_pairs;
};

/*
 * Writes the page. now_tsc: host TSC now. An agent whose last frame is more than a second old
 * counts as down, and the page contains the collector's own cost. 0: a recording, for which neither
 * applies. Returns 0, -ENOMEM or -EIO.
 */
int metrics_page_write(const struct metrics_part *parts, size_t n, uint64_t now_tsc, FILE *to);
/* Writes the page to a temporary file and renames it, so that readers (node_exporter's textfile
 * collector) never see an incomplete one. Returns 0 or -errno. */
int metrics_page_save(const struct metrics_part *parts, size_t n, uint64_t now_tsc,
		      const char *path);

#endif
