/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shows the pairs that `report --pair` names. The pairs of a stalled vCPU that overlap the stall
 * are evidence. On a page they are also spans in the timelines, and each has a heat map of its
 * lengths over time.
 */
#ifndef CLI_SHOWN_PAIRS_H
#define CLI_SHOWN_PAIRS_H

#include "host-collector/cli/pair_figures.h"
#include "host-collector/view/page.h"

struct shown_pairs;

struct shown_pairs_options {
	const char *recording;
	const struct pair_figure_list *list; /* borrowed */
	const struct narrow *narrow;         /* borrowed */
	struct scenes *scenes; /* of a page, which get the pairs; NULL: no page. Borrowed. */
	/* A line for the user: why a pair is not shown. */
	void (*say)(const char *line);
};

/* Subscribes to the model. A pair whose events the recording does not have is not shown. Returns
 * NULL on ENOMEM. */
struct shown_pairs *shown_pairs_new(struct model *m, const struct shown_pairs_options *options);
void shown_pairs_free(struct shown_pairs *p); /* NULL is allowed */
/* Notes an incident when it was found (report_options.noticed). */
void shown_pairs_notice(struct shown_pairs *p, const struct incident *incident);
/* Settles all pairs; call it after model_finish() and before report_builder_finish(). Returns 0 or
 * -ENOMEM. */
int shown_pairs_finish(struct shown_pairs *p);
/* Use as report_options.evidence; context: the struct shown_pairs. */
void shown_pairs_evidence(void *context, struct incident *incident);
/* Decides which pairs are calls; call it before scenes_finish(). Fills the pairs of the page, which
 * stay valid until shown_pairs_free(). Returns 0 or -ENOMEM. */
int shown_pairs_page(struct shown_pairs *p, struct page *page);

#endif
