/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the parts of a page's data as JSON for view/page/report.js. Times are nanoseconds since
 * the report's begin. */
#ifndef VIEW_PAGE_DATA_H
#define VIEW_PAGE_DATA_H

#include "host-collector/view/page.h"

/* Writes `text` as a JSON string that is safe inside HTML. */
void page_text_write(const char *text, FILE *out);
/* Writes the names of the states, waits and arrows that the other parts refer to by number. */
void page_names_write(FILE *out);
void page_scenes_write(const struct scenes *scenes, const struct report *r, FILE *out);
void page_latencies_write(const struct latency_maps *latencies, const struct report *r, FILE *out);
void page_pairs_write(const struct page *page, FILE *out);

#endif
