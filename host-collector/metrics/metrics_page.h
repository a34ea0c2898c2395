/* SPDX-License-Identifier: GPL-2.0-only */
/* Gathers what analyses, pipeline and collector know into one page of metrics. */
#ifndef METRICS_METRICS_PAGE_H
#define METRICS_METRICS_PAGE_H

#include <stdio.h>

#include "host-collector/metrics/metrics.h"
#include "host-collector/engine/pipeline.h"

/* One pipeline's share of the page. */
struct metrics_part {
	const char *name; /* of its only VM; NULL: as the VMM was started with */
	const struct metrics *metrics;
	const struct pipeline *pipeline;
};

/*
 * now_tsc: an agent not heard for a second counts as down, and the collector's own cost is told; 0:
 * of a recording, neither. 0, -ENOMEM or -EIO.
 */
int metrics_page_write(const struct metrics_part *parts, size_t n, uint64_t now_tsc, FILE *to);
/* The same into a file that readers see whole or not at all (node_exporter's textfile collector).
 * 0 or -errno. */
int metrics_page_save(const struct metrics_part *parts, size_t n, uint64_t now_tsc,
		      const char *path);

#endif
