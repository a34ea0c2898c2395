/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collects what `report --format html` shows in addition to the report: timelines, latencies and
 * tables.
 */
#ifndef CLI_REPORT_PAGE_H
#define CLI_REPORT_PAGE_H

#include <stdio.h>

#include "host-collector/analyze/chain/chain.h"
#include "host-collector/analyze/stall/report.h"
#include "host-collector/model/model.h"

struct report_page;
struct scenes;
struct shown_pairs;

/* Allocates the page and subscribes to the model; call it before the replay. Returns NULL if there
 * is no memory. */
struct report_page *report_page_new(struct model *m);
void report_page_free(struct report_page *p);
/* Returns the timelines, which get the pairs that --pair names. Borrowed. */
struct scenes *report_page_scenes(const struct report_page *p);
/* Opens the page's tables; call it before the replay. chains: those of the report's builder, which
 * must outlive the page. narrow: the time that the tables count; must outlive the page, too.
 * Returns 0 or -ENOMEM. */
int report_page_open(struct report_page *p, struct model *m, struct chains *chains,
		     const struct narrow *narrow);
/* Use as report_options.noticed; context: the struct report_page. */
void report_page_notice(void *context, const struct incident *incident);
/* Writes the page; call it after model_finish(). recording: path of the recording. pairs: the pairs
 * that were created with report_page_scenes(), or NULL. Returns 0 or -errno. */
int report_page_write(struct report_page *p, const char *recording, const struct report *r,
		      struct shown_pairs *pairs, FILE *out);

#endif
