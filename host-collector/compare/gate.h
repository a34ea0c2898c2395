/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Judges new runs by base runs and rules. A row is one figure and statistic. It moved if the
 * permutation test (max_t.h) says so at the gate's level, which counts for all rows together; it
 * fails if it moved for the worse and by the rule's hard limit or more, or if the new runs' median
 * is above `max`. What has no data never passes.
 */
#ifndef COMPARE_GATE_H
#define COMPARE_GATE_H

#include "host-collector/compare/gate_rules.h"
#include "host-collector/compare/shift.h"

/* X(NAME, "name") Of a row, and of the whole. */
#define GATE_OUTCOMES(X)                                                                           \
	X(PASS, "pass")                                                                            \
	X(BETTER, "better")   /* moved, for the better */                                          \
	X(WORSE, "worse")     /* moved, below the limits */                                        \
	X(SOFT, "warning")    /* moved, beyond the soft limit */                                   \
	X(HARD, "regression") /* moved, beyond the hard limit, or above max */                     \
	X(RARE, "rare")       /* too few samples on both sides: not tested */                      \
	X(NO_DATA, "no data") /* too few samples where there have to be enough */

enum gate_outcome {
#define X(NAME, ...) GATE_##NAME,
	GATE_OUTCOMES(X)
#undef X
		GATE_OUTCOME_COUNT
};

/* As in the JSON (docs/gate.md); static. */
const char *gate_outcome_name(enum gate_outcome o);

struct gate_row {
	const struct gate_rule *rule;
	char figure[FIGURE_NAME_MAX]; /* a pattern if nothing matches it */
	enum gate_outcome outcome;
	size_t n_base, n_new; /* runs with enough samples */
	/* The rest only where both have min_runs. */
	double base, new;    /* medians over runs, in the statistic's unit */
	struct shift change; /* percent; of a share percentage points */
	double p;            /* adjusted for all rows: that chance shows as much */
	bool above_max;
};

struct gate_result {
	enum gate_outcome outcome; /* PASS, SOFT (passes with a warning), HARD or NO_DATA */
	size_t n_base, n_new;
	struct gate_row *rows;
	size_t n, tested;
	const struct gate_row *first; /* the first to move in the order of cause; NULL: none */
	uint64_t splits;
	bool complete;                   /* every split was gone through */
	double false_alarms, confidence; /* of the gate; of the intervals */
	bool simulated;
	char why[256]; /* NO_DATA: what is missing; else "" */
};

/* Rules are borrowed. 0, or -errno (-EINVAL: simulated runs against real ones) with one line in
 * `why`. gate_result_fini in any case. */
int gate_judge(const struct run_set *base, const struct run_set *new,
	       const struct gate_rules *rules, struct gate_result *out, char *why,
	       size_t why_bytes);
void gate_result_fini(struct gate_result *r);

#endif
