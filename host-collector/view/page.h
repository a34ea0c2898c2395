/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a report as one HTML file that contains its style, scripts and data. It loads no other
 * file and works from disk. The scripts of view/page/ draw it from the data that this module
 * writes; without scripts the page shows the report's text.
 *
 * The size of the file is bounded: of more than PAGE_INCIDENTS_MAX incidents it shows the longest
 * and states how many it leaves out.
 */
#ifndef VIEW_PAGE_H
#define VIEW_PAGE_H

#include <stdio.h>

#include "host-collector/analyze/scene/latency_map.h"
#include "host-collector/analyze/stall/report.h"
#include "host-collector/analyze/scene/scene.h"
#include "host-collector/tables/table.h"

enum { PAGE_INCIDENTS_MAX = 250, PAGE_TABLES_MAX = 20, PAGE_PIECES_MAX = 24000 };

/* A pair of events that the user named. */
struct page_pair {
	const char *name, *from, *to;
	struct latency_map *map; /* of its calls; may be empty */
	uint64_t unpaired_from, unpaired_to, incomplete, ambiguous;
};

struct page {
	const char *recording; /* name of the recording */
	const struct report *report;
	const struct scenes *scenes;          /* after scenes_finish() */
	const struct latency_maps *latencies; /* complete */
	size_t n_pairs;
	struct page_pair pairs[SCENE_PAIRS_MAX];
	size_t n_tables;
	struct table *tables[PAGE_TABLES_MAX];
};

/* Writes the page. Returns 0, -ENOMEM or -EIO. */
int page_write(const struct page *page, FILE *out);

#endif
