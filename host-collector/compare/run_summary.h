/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The summary of a run for comparisons: a list of named figures (VM-exits by reason, stages of
 * interrupts, run delay, shares of the vCPUs' time), each with the statistics that a gate can use.
 * The names consist of fixed words and contain no text from a guest.
 *
 * A summaries file is JSON and holds any number of runs, so that a baseline is one small file.
 */
#ifndef COMPARE_RUN_SUMMARY_H
#define COMPARE_RUN_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { FIGURE_NAME_MAX = 64, RUN_FIGURES_MAX = 1024, RUN_SET_MAX = 4096 };

/* X(NAME, "name", quantile as a share; 0: not a quantile). Times are in nanoseconds. */
#define RUN_STATISTICS(X)                                                                          \
	X(MEAN, "mean", 0)                                                                         \
	X(P50, "p50", 0.5)                                                                         \
	X(P90, "p90", 0.9)                                                                         \
	X(P95, "p95", 0.95)                                                                        \
	X(P99, "p99", 0.99)                                                                        \
	X(P99_9, "p99.9", 0.999)                                                                   \
	X(RATE, "rate", 0)   /* per second */                                                      \
	X(SHARE, "share", 0) /* of the vCPUs' time, percent */

enum run_statistic {
#define X(NAME, ...) RUN_##NAME,
	RUN_STATISTICS(X)
#undef X
		RUN_STATISTIC_COUNT
};

/* Returns the name as in summaries files and gates.conf ("p99"). Static. */
const char *run_statistic_name(enum run_statistic s);
/* Returns RUN_STATISTIC_COUNT if no statistic has this name. */
enum run_statistic run_statistic_find(const char *name);
/* Returns how many samples the statistic needs: enough for five beyond the quantile, at least 20. A
 * share needs one millisecond. */
uint64_t run_statistic_needs(enum run_statistic s);

struct run_figure {
	char name[FIGURE_NAME_MAX];     /* for example "exit.HLT" */
	uint64_t count;                 /* number of samples; for a share, the total time in ms */
	double at[RUN_STATISTIC_COUNT]; /* NAN: the figure does not have the statistic */
};

struct run_summary {
	char *recording; /* path of the recording */
	bool simulated;
	int64_t span_ns;
	uint64_t lost; /* number of lost events */
	struct run_figure *figures;
	size_t n;
};

struct run_set {
	struct run_summary *runs;
	size_t n;
};

/* Adds a figure whose statistics are all NAN. It is valid until the next call. Returns NULL if
 * there is no memory or the run has RUN_FIGURES_MAX figures. */
struct run_figure *run_figure_add(struct run_summary *run, const char *name);
const struct run_figure *run_figure_find(const struct run_summary *run, const char *name);
/* Appends a run without figures. Returns NULL if there is no memory or the set has RUN_SET_MAX
 * runs. */
struct run_summary *run_set_add(struct run_set *set, const char *recording);
void run_set_fini(struct run_set *set);

/* Returns whether the file looks like a summaries file; false also if it cannot be read. */
bool run_set_is_file(const char *path);
/* Adds the runs of a summaries file. Returns 0, or -errno with one line in `why`. */
int run_set_read(struct run_set *set, const char *path, char *why, size_t why_bytes);
/* Writes a summaries file. Returns 0, -ENOMEM or -EIO. */
int run_set_write(const struct run_set *set, FILE *to);

#endif
