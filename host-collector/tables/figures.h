/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kinds of table that `report TABLE` and `watch TABLE` can show: one row of `figures_kinds`
 * each, made of the columns, the analysis behind them and what fills the ones from the other.
 */
#ifndef TABLES_FIGURES_H
#define TABLES_FIGURES_H

#include "clock/histogram.h"
#include "host-collector/tables/figures_options.h"
#include "host-collector/model/model.h"
#include "host-collector/tables/table.h"

/* By what --per can split a table's rows. */
enum figures_per {
	FIGURES_PER_VCPU = 1,
	FIGURES_PER_PCPU = 2,
	FIGURES_PER_VECTOR = 4,
	FIGURES_PER_TASK = 8,
};

struct figures_column {
	unsigned per; /* shown only if the rows are split by one of these; 0: always */
	struct table_column column;
};

/* What was asked for, and over what time. */
struct figures_view {
	const struct model *model;
	unsigned per; /* enum figures_per */
	int64_t than_ns;
	int64_t span_ns; /* what the figures cover */
	size_t top;      /* for a kind without sort_by, which cuts by itself; 0: all */
};

struct figures_kind {
	const char *name;
	const char *title; /* over its rows where several tables are shown */
	const struct figures_column *columns;
	size_t n_columns;
	const char *sort_by; /* a column's name; NULL: it fills its rows in their order */
	bool records;        /* as text, a block for each row: too wide for lines */
	unsigned per;        /* what --per can be... */
	unsigned per_is;     /* ... and what it is without; 0: a row for each VM */
	bool than;           /* --than is possible */
	/* The analysis. NULL on ENOMEM. */
	void *(*open)(struct model *m, const struct figures_options *options);
	void (*close)(void *analysis);
	/* Forgets the figures so far. */
	void (*clear)(void *analysis);
	/* No more events follow: counts what waited for more. May be NULL. */
	void (*finish)(void *analysis);
	/* 0, or -ENOMEM: something could not be counted. */
	int (*fill)(void *analysis, const struct figures_view *view, struct table *t);
};

/* Ended by one without a name. */
extern const struct figures_kind figures_latency[], figures_guest[], figures_exits[],
	figures_chains[];

/* The kind number `index` of all, NULL past the last. */
const struct figures_kind *figures_kind_at(size_t index);

enum { FIGURES_PAGE_TABLES = 6 };

/* Tables that answer one question together; the first of them has the page's name. */
struct figures_page {
	const char *tables[FIGURES_PAGE_TABLES];
};

/* Ended by one without a table. */
extern const struct figures_page figures_pages[];

#define FIGURES_COLUMNS(array) (array), sizeof(array) / sizeof((array)[0])

/* p50 to max of a histogram. */
#define FIGURES_QUANTILES                                                                          \
	{0, {"p50", "p50", TABLE_NS}}, {0, {"p95", "p95", TABLE_NS}},                              \
		{0, {"p99", "p99", TABLE_NS}}, {0, {"p99_9", "p99.9", TABLE_NS}},                  \
	{                                                                                          \
		0,                                                                                 \
		{                                                                                  \
			"max", "max", TABLE_NS                                                     \
		}                                                                                  \
	}

/* 0 of nothing. */
double figures_percent(int64_t part, int64_t whole);
/* For a cell: what does not fit becomes INT64_MAX. */
int64_t figures_clip(uint64_t ns);
/* The cells for FIGURES_QUANTILES. */
void figures_quantiles(struct table *t, const struct histogram *h);

#endif
