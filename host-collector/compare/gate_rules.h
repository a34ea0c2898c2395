/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads gates.conf: which figures a gate compares, and the limits. Each line has one statement; `#`
 * starts a comment:
 *
 *	false_alarms 2.5%
 *	min_runs 5
 *	gate FIGURE STATISTIC [soft N] [hard N] [max N] [optional]
 *
 * FIGURE may contain * and ?. For soft and hard, N is a change for the worse in percent, or for a
 * share in percentage points ("0.5pp"). For max, N is a value: a time ("200us"), a percentage, or a
 * number per second. For each figure and statistic the first matching line applies.
 */
#ifndef COMPARE_GATE_RULES_H
#define COMPARE_GATE_RULES_H

#include "host-collector/compare/run_summary.h"

enum { GATE_RULES_MAX = 256, GATE_NEEDED_MAX = 16 };

struct gate_rule {
	char figure[FIGURE_NAME_MAX]; /* a pattern */
	enum run_statistic statistic;
	double soft, hard; /* percent, or percentage points; NAN: none */
	double max;        /* in the statistic's unit; NAN: none */
	bool optional;     /* lack of data is allowed */
};

struct gate_rules {
	double false_alarms; /* probability of at least one false alarm, 0 to 1 */
	size_t min_runs;     /* required on each side, with enough samples */
	struct gate_rule rules[GATE_RULES_MAX];
	size_t n;
	/* Figures of which at least one statistic must be tested, also if it is optional. */
	char needed[GATE_NEEDED_MAX][FIGURE_NAME_MAX];
	size_t n_needed;
};

/* Parses rules. name: for messages. Returns 0, or -EINVAL with one line in `why`. */
int gate_rules_parse(const char *text, const char *name, struct gate_rules *out, char *why,
		     size_t why_bytes);
/* Reads and parses a file; path NULL: the default rules. Returns 0, or -errno with one line in
 * `why`. */
int gate_rules_read(const char *path, struct gate_rules *out, char *why, size_t why_bytes);
/* Adds a figure to `needed`. Returns 0, or -EINVAL with one line in `why`: no rule is for it, or
 * there are GATE_NEEDED_MAX already. */
int gate_rules_need(struct gate_rules *rules, const char *figure, char *why, size_t why_bytes);
/* Returns the first rule for a figure, or NULL if no rule is for it. */
const struct gate_rule *gate_rules_find(const struct gate_rules *rules, const char *figure);
/* The default rules, the content of deploy/ci/gates.conf. */
extern const char gate_rules_default[];

#endif
