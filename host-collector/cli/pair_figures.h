/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Computes pairs of events as figures of `summarize` and `compare`: --pair NAME=A..B gives the
 * figure "pair.NAME", the times from A to B (docs/gate.md). Only calls count: pairs that may be
 * wrong because of a loss or of the clocks' error are not part of the figure (docs/pairs.md).
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
		.name = "pair", .type = OPTION_LIST, .offset = (at), .value = "NAME[KEY]=A..B",    \
		.help = "also compute the figure pair.NAME: the time from event A to event B "     \
			"(docs/pairs.md) by KEY, or by the attribute key of A and B (default "     \
			"vcpu, or cpu if both are of one side)"                                    \
	}

struct pair_figure_list {
	struct pair_definition items[PAIR_WATCH_MAX];
	struct run_figure_name {
		char text[FIGURE_NAME_MAX]; /* "pair.NAME", cut if it is too long for a figure */
	} figures[PAIR_WATCH_MAX];
	size_t n;
};

/* Reads the values of --pair, whose names have up to name_max characters (below PAIR_NAME_BYTES).
 * Returns 0, or -EINVAL with one line in `why`. */
int pair_list_parse(const struct option_list *texts, size_t name_max, struct pair_figure_list *out,
		    char *why, size_t why_bytes);
/* Does the same, but accepts only names that figures can have. */
int pair_figures_parse(const struct option_list *texts, struct pair_figure_list *out, char *why,
		       size_t why_bytes);

/* Reads the recording for the events that it describes, once for all pairs. Returns NULL on
 * ENOMEM. The caller frees them with event_schemas_free(), after the pairs. */
struct event_schemas *pair_events_read(const char *recording);

/* A pair in one recording. */
struct pair_of_run {
	struct event_choices choices;
	struct pairs *pairs;
};

/* Subscribes to the model that the recording will be replayed to. schemas: the recording's events
 * (pair_events_read()); borrowed. Returns 0, or -errno with one line in `why`: -EINVAL if the
 * recording does not have an event. The caller calls pair_of_run_fini() in both cases, before it
 * frees the model. */
int pair_of_run_start(struct pair_of_run *p, struct model *m, const char *recording,
		      struct event_schemas *schemas, const struct pair_definition *d,
		      const struct pairs_options *options, char *why, size_t why_bytes);
void pair_of_run_fini(struct pair_of_run *p);

/* The pairs of one recording. */
struct pair_figures {
	const struct pair_figure_list *list;
	struct pair_of_run of[PAIR_WATCH_MAX];
	size_t n; /* number of elements of `of` that were started */
	struct event_schemas *schemas;
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
