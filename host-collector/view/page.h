/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A report as one HTML file that needs nothing else: style, script and data are in it, it loads
 * nothing and works from disk. Drawn by the scripts of view/page/ from the data that is written
 * here; without scripts the page shows the report's text.
 *
 * Its size is bounded: of more than PAGE_INCIDENTS_MAX incidents the longest are shown, and the
 * page says how many are not.
 */
#ifndef VIEW_PAGE_H
#define VIEW_PAGE_H

#include <stdio.h>

#include "host-collector/analyze/scene/latency_map.h"
#include "host-collector/analyze/stall/report.h"
#include "host-collector/analyze/scene/scene.h"
#include "host-collector/tables/table.h"

enum { PAGE_INCIDENTS_MAX = 250, PAGE_TABLES_MAX = 20, PAGE_PIECES_MAX = 24000 };

struct page {
	const char *recording; /* how it is called */
	const struct report *report;
	const struct scenes *scenes;          /* finished */
	const struct latency_maps *latencies; /* finished */
	size_t n_tables;
	struct table *tables[PAGE_TABLES_MAX];
};

/* 0, -ENOMEM, -EIO. */
int page_write(const struct page *page, FILE *out);

#endif
