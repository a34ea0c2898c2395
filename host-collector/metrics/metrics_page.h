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

struct metrics_page_options {
	/* Host TSC now. An agent whose last frame is more than a second old counts as down, and the
	 * page contains the collector's own cost. 0: a recording, for which neither applies. */
	uint64_t now_tsc;
	bool vms, sums;                  /* series of each VM; sums of the host */
	const struct metrics_sum *past;  /* of VMs that are gone, for the sums; may be NULL */
	const struct metrics_host *host; /* for the sums; may be NULL */
};

/* Writes the page. Returns 0, -ENOMEM or -EIO. */
int metrics_page_write(const struct metrics_part *parts, size_t n,
		       const struct metrics_page_options *options, FILE *to);
/* Writes the page to a temporary file and renames it, so that readers (node_exporter's textfile
 * collector) never see an incomplete one. Returns 0 or -errno. */
int metrics_page_save(const struct metrics_part *parts, size_t n,
		      const struct metrics_page_options *options, const char *path);

/* Adds the counters of a part whose VMs go away. All zeros are an empty sum. Returns 0 or -ENOMEM.
 * Call metrics_sum_fini() when the sum is no longer needed. */
int metrics_past_add(struct metrics_sum *past, const struct metrics_part *part);
void metrics_sum_fini(struct metrics_sum *sum);

#endif
