/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all analyses of the tables have in common. An analysis subscribes to the model, counts, and
 * is read by its own functions (tables/exits.h and others). Each one is described by one
 * `struct analysis`, which tables, pages, metrics and summaries use to run it.
 */
#ifndef TABLES_ANALYSIS_H
#define TABLES_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/histogram.h"

struct figures_kind;
struct model;

/* How an analysis splits and filters its items. A NULL pointer to it means all zero: one item for
 * each VM, of any length. */
struct figures_options {
	bool per_vcpu;   /* one item for each vCPU or guest CPU */
	bool per_pcpu;   /* one item for each pCPU */
	int64_t than_ns; /* shortest length that counts */
};

/* Receives a histogram under the name of its figure in summaries ("run_delay.wakeup"). Returns 0,
 * or a negative errno, which ends the walk. */
typedef int analysis_histogram_take(void *context, const char *figure, const struct histogram *h);

struct analysis {
	const char *name;
	/* Subscribes to the model; the caller must not feed the model after free(). Copies the
	 * options. Returns NULL on ENOMEM. */
	void *(*new)(struct model *m, const struct figures_options *options);
	void (*free)(void *analysis); /* accepts NULL */
	/* Clears all counts. What is in progress stays. */
	void (*clear)(void *analysis);
	/* Counts what waited for further events; call it after model_finish(). NULL: nothing waits.
	 */
	void (*finish)(void *analysis);
	/* Returns 0, or -ENOMEM if something could not be counted. NULL: counting allocates
	 * nothing.
	 */
	int (*error)(const void *analysis);
	/* Passes the histograms that summaries contain. Returns 0, or what `take` returned. NULL:
	 * summaries contain nothing of it. */
	int (*histograms)(void *analysis, analysis_histogram_take *take, void *context);
	/* Its tables (tables/figures.h); ends with an entry without a name. */
	const struct figures_kind *tables;
};

/* The state of an analysis may begin with this; the functions below then serve any of them. */
struct analysis_base {
	struct model *model;
	struct figures_options options;
	int error; /* -ENOMEM: something could not be counted */
};
/* Allocates the state of an analysis: `bytes` bytes, all 0 except the struct analysis_base at the
 * begin. Returns NULL on ENOMEM. */
void *analysis_allocate(size_t bytes, struct model *m, const struct figures_options *options);
/* Returns the error of the state: struct analysis.error. */
int analysis_error(const void *analysis);

/* The analyses that have tables, in the order in which users are offered them; ends with NULL. */
extern const struct analysis *const analyses_all[];

enum { ANALYSES_MAX = 8 };

/* Running analyses that belong together. All zero is an empty set. */
struct analyses {
	struct {
		const struct analysis *what;
		struct figures_options options;
		void *self;
	} items[ANALYSES_MAX];
	size_t n;
};

/* Starts an analysis; returns the one that runs already if it has the same options. The set owns
 * it. Returns NULL on ENOMEM, or if the set is full. */
void *analyses_start(struct analyses *set, const struct analysis *what, struct model *m,
		     const struct figures_options *options);
/* Calls clear() or finish() of each. */
void analyses_clear(struct analyses *set);
void analyses_finish(struct analyses *set);
/* Returns the first error of an analysis, 0 if there is none. */
int analyses_error(const struct analyses *set);
/* Frees the analyses and empties the set. */
void analyses_fini(struct analyses *set);

#endif
