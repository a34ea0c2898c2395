/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What one run comes down to when runs are compared: a list of named figures (VM-exits by reason,
 * interrupt stages, run delay, shares of the vCPUs' time), each with the statistics that a gate can
 * ask for. Names are made of fixed words only; nothing that a guest chose is in them.
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

/* X(NAME, "name", share of the values at or below it; 0: is no quantile) Times in nanoseconds. */
#define RUN_STATISTICS(X)                                                                          \
	X(MEAN, "mean", 0)                                                                         \
	X(P50, "p50", 0.5)                                                                         \
	X(P90, "p90", 0.9)                                                                         \
	X(P95, "p95", 0.95)                                                                        \
	X(P99, "p99", 0.99)                                                                        \
	X(P99_9, "p99.9", 0.999)                                                                   \
	X(RATE, "rate", 0)   /* a second */                                                        \
	X(SHARE, "share", 0) /* of the vCPUs' time, percent */

enum run_statistic {
#define X(NAME, ...) RUN_##NAME,
	RUN_STATISTICS(X)
#undef X
		RUN_STATISTIC_COUNT
};

/* As in summaries and gates.conf ("p99"); static. */
const char *run_statistic_name(enum run_statistic s);
/* RUN_STATISTIC_COUNT if there is none of that name. */
enum run_statistic run_statistic_find(const char *name);
/* How many samples it takes: five beyond a quantile, at least 20. A share: one millisecond. */
uint64_t run_statistic_needs(enum run_statistic s);

struct run_figure {
	char name[FIGURE_NAME_MAX]; /* "exit.HLT" */
	uint64_t count;             /* samples; of a share: milliseconds that it is a share of */
	double at[RUN_STATISTIC_COUNT]; /* NAN: this figure has no such statistic */
};

struct run_summary {
	char *recording; /* its file name */
	bool simulated;
	int64_t span_ns;
	uint64_t lost; /* events that never came */
	struct run_figure *figures;
	size_t n;
};

struct run_set {
	struct run_summary *runs;
	size_t n;
};

/* A figure whose statistics are all NAN; valid until the next. NULL on ENOMEM or one too many. */
struct run_figure *run_figure_add(struct run_summary *run, const char *name);
const struct run_figure *run_figure_find(const struct run_summary *run, const char *name);
/* A run without figures at the end of the set, NULL on ENOMEM or one too many. */
struct run_summary *run_set_add(struct run_set *set, const char *recording);
void run_set_fini(struct run_set *set);

/* Is this file one of summaries? false also if it cannot be read. */
bool run_set_is_file(const char *path);
/* Adds the runs of a file. 0, or -errno with one line in `why`. */
int run_set_read(struct run_set *set, const char *path, char *why, size_t why_bytes);
/* 0, -ENOMEM or -EIO. */
int run_set_write(const struct run_set *set, FILE *to);

#endif
