/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pairs of events as figures of `summarize` and `compare`: --pair NAME=A..B gives the figure
 * "pair.NAME", the times from A to B (docs/gate.md). Only calls count: pairs that a loss or the
 * clocks' error makes unsure are not part of the figure (docs/pairs.md).
 */
#ifndef CLI_PAIR_FIGURES_H
#define CLI_PAIR_FIGURES_H

#include "host-collector/analyze/event/choices.h"
#include "host-collector/analyze/event/pair_definition.h"
#include "host-collector/analyze/event/pairs.h"
#include "host-collector/compare/summarize.h"
#include "proto/program/options.h"

/* at: offset of a struct option_list in the command's struct */
#define PAIR_FIGURES_OPTION_ROW(at)                                                                \
	{                                                                                          \
		.name = "pair", .type = OPTION_LIST, .offset = (at), .value = "NAME=A..B",         \
		.help = "also compute the figure pair.NAME: the time from event A to event B "     \
			"(docs/pairs.md), by vCPU, or by the attribute key of A and B"             \
	}

struct pair_figure_list {
	struct pair_definition items[PAIR_WATCH_MAX];
	struct run_figure_name {
		char text[FIGURE_NAME_MAX]; /* "pair.NAME" */
	} figures[PAIR_WATCH_MAX];
	size_t n;
};

/* Reads the values of --pair. Returns 0, or -EINVAL with one line in `why`. */
int pair_figures_parse(const struct option_list *texts, struct pair_figure_list *out, char *why,
		       size_t why_bytes);

/* The pairs of one recording. */
struct pair_figures {
	const struct pair_figure_list *list;
	struct pair_of_run {
		struct event_choices choices;
		struct pairs *pairs;
	} of[PAIR_WATCH_MAX];
	size_t n; /* of them have choices */
};

/* Subscribes to the model that the recording will be replayed to. `list` is borrowed. Returns 0, or
 * -errno with one line in `why`: -EINVAL if the recording does not have an event. The caller calls
 * pair_figures_fini() in both cases, before it frees the model. */
int pair_figures_start(struct pair_figures *f, struct model *m, const char *recording,
		       const struct pair_figure_list *list, char *why, size_t why_bytes);
/* Adds the figures, also those without calls; call it after the replay and before
 * summarizer_finish(). Returns 0 or -ENOMEM. */
int pair_figures_finish(struct pair_figures *f, struct summarizer *to);
void pair_figures_fini(struct pair_figures *f);

#endif
