/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of a page's data, as JSON that view/page/report.js reads. Times are nanoseconds since
 * the report's begin. */
#ifndef VIEW_PAGE_DATA_H
#define VIEW_PAGE_DATA_H

#include "host-collector/view/page.h"

/* "text", quoted and safe to show. */
void page_text_write(const char *text, FILE *out);
/* What the numbers of states, waits and arrows in the other parts mean. */
void page_names_write(FILE *out);
void page_scenes_write(const struct scenes *scenes, const struct report *r, FILE *out);
void page_latencies_write(const struct latency_maps *latencies, const struct report *r, FILE *out);

#endif
