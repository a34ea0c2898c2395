/* SPDX-License-Identifier: GPL-2.0-only */
/* What `report --format html` gathers beside the report: timelines, latencies, tables. */
#ifndef CLI_REPORT_PAGE_H
#define CLI_REPORT_PAGE_H

#include <stdio.h>

#include "host-collector/analyze/chain/chain.h"
#include "host-collector/analyze/stall/report.h"
#include "host-collector/model/model.h"

struct report_page;

/* Subscribes to the model before events are played through it. NULL on ENOMEM. */
struct report_page *report_page_new(struct model *m);
void report_page_free(struct report_page *p);
/* Opens its tables, before events are played. `chains`: of the report's builder, which must outlive
 * the page. 0 or -ENOMEM. */
int report_page_open(struct report_page *p, struct model *m, struct chains *chains);
/* report_options.noticed; context: the struct report_page. */
void report_page_notice(void *context, const struct incident *incident);
/* After model_finish. `recording`: its file's name. 0 or -errno. */
int report_page_write(struct report_page *p, const char *recording, const struct report *r,
		      FILE *out);

#endif
