/* SPDX-License-Identifier: GPL-2.0-only */
/* `watch --pair`: prints pairs of events that take long, one line for each, as soon as they have
 * ended. analyze/event/pair_watch.h finds the pairs, as in the daemon. */
#ifndef CLI_WATCH_PAIRS_H
#define CLI_WATCH_PAIRS_H

#include <stdio.h>

#include "host-collector/analyze/stall/report.h"
#include "host-collector/cli/pair_figures.h"
#include "host-collector/engine/live.h"
#include "proto/program/options.h"

struct watch_pairs_arguments {
	struct option_list pairs, than;
};

/* at: offset of a struct watch_pairs_arguments in the command's struct */
#define WATCH_PAIRS_OPTION_ROWS(at)                                                                 \
	{.name = "pair",                                                                            \
	 .type = OPTION_LIST,                                                                       \
	 .offset = (at) + offsetof(struct watch_pairs_arguments, pairs),                            \
	 .value = "NAME[KEY]=A..B",                                                                 \
	 .help = "also print the pairs from event A to event B (docs/pairs.md), by KEY (default "   \
		 "vcpu, or cpu if both are of one side); captures A and B as -e does, unless they " \
		 "are captured already; may be repeated"},                                          \
	{                                                                                           \
		.name = "pair-than", .type = OPTION_LIST,                                           \
		.offset = (at) + offsetof(struct watch_pairs_arguments, than), .value = "TIME",     \
		.help = "with --pair: print pairs of at least this length; one for all, or one "    \
			"for each --pair in their order (default: all pairs)"                       \
	}

/* Reads the definitions with their lengths. Returns 0, or -EINVAL with one line in `why`. */
int watch_pairs_read(const struct watch_pairs_arguments *a, struct pair_figure_list *out, char *why,
		     size_t why_bytes);

struct watch_pairs_options {
	const struct pair_figure_list *list;
	bool json;     /* an object for each pair (docs/report-json.md) instead of text */
	bool terminal; /* `out` is a terminal: lines are wrapped */
	FILE *out;
	/* Takes a line that is not for `out`, unescaped. */
	void (*say)(void *context, const char *line);
	void *context;
};

struct watch_pairs;

/* Subscribes to the merged model. The caller frees the model before watch_pairs_free(). Returns
 * NULL on ENOMEM. */
struct watch_pairs *watch_pairs_new(const struct live *l, struct model *m,
				    const struct watch_pairs_options *options);
void watch_pairs_free(struct watch_pairs *w); /* NULL is allowed */
/* Call it about every 100 ms. Returns the number of pairs that were printed since the last call. */
uint64_t watch_pairs_tick(struct watch_pairs *w);
/* Prints the pairs that were found and not printed yet. Call it after live_finish(). Returns 0 or
 * -ENOMEM. */
int watch_pairs_finish(struct watch_pairs *w);
/* Adds the pairs that overlap the incident to its evidence. */
void watch_pairs_evidence(const struct watch_pairs *w, struct incident *incident);

#endif
