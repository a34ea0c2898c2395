/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables of `report TABLE` and `watch TABLE`. Each is one row of its analysis' `tables`: its
 * columns, and the function that fills them from the analysis. Both stand in the analysis' file.
 */
#ifndef TABLES_FIGURES_H
#define TABLES_FIGURES_H

#include "clock/histogram.h"
#include "host-collector/tables/analysis.h"
#include "host-collector/model/model.h"
#include "host-collector/tables/table.h"

/* The ways in which --per can split a table's rows. */
enum figures_per {
	FIGURES_PER_VCPU = 1,
	FIGURES_PER_PCPU = 2,
	FIGURES_PER_VECTOR = 4,
	FIGURES_PER_TASK = 8,
	FIGURES_PER_PROCESS = 16,
	FIGURES_PER_CGROUP = 32,
};

struct figures_column {
	unsigned per; /* shown only if the rows are split by one of these; 0: always */
	struct table_column column;
};

/* The request, and the time that it covers. */
struct figures_view {
	const struct model *model;
	unsigned per; /* bits of enum figures_per */
	int64_t than_ns;
	int64_t span_ns;      /* length of the time that the table covers */
	struct host_ns until; /* its end */
	size_t top;           /* maximum number of rows, for a table without sort_by; 0: no limit */
};

struct figures_kind {
	const char *name;
	const char *title; /* heading, where several tables are shown */
	const struct figures_column *columns;
	size_t n_columns;
	const char *sort_by; /* name of the column to sort by; NULL: fill() adds the rows in their
				order */
	bool records;        /* text shows each row as a block, because it is too wide for a line */
	unsigned per;        /* values that --per accepts */
	unsigned per_is;     /* value if --per is absent; 0: one row for each VM */
	bool than;           /* the table accepts --than */
	/* Adds the rows to `t`. Returns 0 or -ENOMEM. */
	int (*fill)(void *analysis, const struct figures_view *view, struct table *t);
};

enum { FIGURES_PAGE_TABLES = 6 };

/* Tables that answer one question together. The page has the name of the first one. */
struct figures_page {
	const char *tables[FIGURES_PAGE_TABLES];
};

/* Ends with an entry without a table. */
extern const struct figures_page figures_pages[];

#define FIGURES_COLUMNS(array) (array), sizeof(array) / sizeof((array)[0])

/* The columns p50 to max of a histogram. */
#define FIGURES_QUANTILES                                                                          \
	{0, {"p50", "p50", TABLE_NS}}, {0, {"p95", "p95", TABLE_NS}},                              \
		{0, {"p99", "p99", TABLE_NS}}, {0, {"p99_9", "p99.9", TABLE_NS}},                  \
	{                                                                                          \
		0,                                                                                 \
		{                                                                                  \
			"max", "max", TABLE_NS                                                     \
		}                                                                                  \
	}

/* Returns the percentage of `part` in `whole`, 0 if `whole` is 0. */
double figures_percent(int64_t part, int64_t whole);
/* Converts to the type of a cell. Values above INT64_MAX become INT64_MAX. */
int64_t figures_clip(uint64_t ns);
/* Adds the cells for FIGURES_QUANTILES to the current row. */
void figures_quantiles(struct table *t, const struct histogram *h);

#endif
