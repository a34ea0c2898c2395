/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gates.conf: which figures a gate watches and what it lets pass. One statement a line, `#` begins
 *a comment:
 *
 *	false_alarms 2.5%
 *	min_runs 5
 *	gate FIGURE STATISTIC [soft N] [hard N] [max N] [optional]
 *
 * FIGURE may hold * and ?. N of soft and hard is a change for the worse: percent, or of a share
 * percentage points ("0.5pp"); of max it is a value: a time ("200us"), a percentage, a number a
 * second. The first line that names a figure and statistic counts.
 */
#ifndef COMPARE_GATE_RULES_H
#define COMPARE_GATE_RULES_H

#include "host-collector/compare/run_summary.h"

enum { GATE_RULES_MAX = 256 };

struct gate_rule {
	char figure[FIGURE_NAME_MAX]; /* a pattern */
	enum run_statistic statistic;
	double soft, hard; /* percent, or percentage points; NAN: none */
	double max;        /* in the statistic's unit; NAN: none */
	bool optional;     /* it may have no data */
};

struct gate_rules {
	double false_alarms; /* the probability of any, if nothing changed; 0..1 */
	size_t min_runs;     /* on each side, with enough samples */
	struct gate_rule rules[GATE_RULES_MAX];
	size_t n;
};

/* The rules in `text`; `name` is for messages. 0, or -EINVAL with one line in `why`. */
int gate_rules_parse(const char *text, const char *name, struct gate_rules *out, char *why,
		     size_t why_bytes);
/* The same of a file; path NULL: the default rules. 0 or -errno. */
int gate_rules_read(const char *path, struct gate_rules *out, char *why, size_t why_bytes);
/* The text of the default rules, which is deploy/ci/gates.conf. */
extern const char gate_rules_default[];

#endif
