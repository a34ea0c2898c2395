/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compares new runs with base runs by rules. A row of the result is one figure and statistic. A row
 * moved if the permutation test (max_t.h) is significant at the gate's level (`false_alarms`),
 * which holds for all rows together. A row fails if it moved for the worse by at least the rule's
 * hard limit, or if the new runs' median is above `max`. A gate that lacks required data does not
 * pass.
 */
#ifndef COMPARE_GATE_H
#define COMPARE_GATE_H

#include "host-collector/compare/gate_rules.h"
#include "host-collector/compare/shift.h"

/* X(NAME, "name"): the outcome of a row, and of the gate. */
#define GATE_OUTCOMES(X)                                                                           \
	X(PASS, "pass")                                                                            \
	X(BETTER, "better")   /* moved for the better */                                           \
	X(WORSE, "worse")     /* moved for the worse, below the limits */                          \
	X(SOFT, "warning")    /* moved by the soft limit or more */                                \
	X(HARD, "regression") /* moved by the hard limit or more, or above max */                  \
	X(RARE, "rare")       /* not tested: too few samples on both sides */                      \
	X(NO_DATA, "no data") /* too few samples where the rule requires them */

enum gate_outcome {
#define X(NAME, ...) GATE_##NAME,
	GATE_OUTCOMES(X)
#undef X
		GATE_OUTCOME_COUNT
};

/* Returns the name as in the JSON (docs/gate.md). Static. */
const char *gate_outcome_name(enum gate_outcome o);

enum gate_side { GATE_BOTH_SIDES, GATE_BASE, GATE_NEW };

struct gate_row {
	const struct gate_rule *rule;
	char figure[FIGURE_NAME_MAX]; /* the rule's pattern if it matches no figure */
	enum gate_outcome outcome;
	size_t n_base, n_new; /* runs with enough samples */
	/* The side that has the figure, if no run of the other side has it. */
	enum gate_side only_in;
	/* The following members are valid only if the row was tested. */
	double base, new;    /* medians over runs, in the statistic's unit */
	struct shift change; /* percent; percentage points for a share */
	double p;            /* p-value, adjusted for all rows */
	bool above_max;
};

struct gate_result {
	enum gate_outcome outcome; /* PASS, SOFT (passes with a warning), HARD or NO_DATA */
	size_t n_base, n_new;
	struct gate_row *rows;
	size_t n, tested;
	const struct gate_row *first; /* first failed row in the order of cause; NULL: none */
	uint64_t splits;
	bool complete;                   /* all splits were evaluated */
	double false_alarms, confidence; /* of the gate; of the intervals */
	bool simulated;
	char why[256]; /* for NO_DATA, what is missing; else "" */
};

/* Evaluates the rules, which the result borrows. Returns 0, or -errno with one line in `why`
 * (-EINVAL: simulated and real runs together). The caller calls gate_result_fini() in both
 * cases. */
int gate_judge(const struct run_set *base, const struct run_set *new,
	       const struct gate_rules *rules, struct gate_result *out, char *why,
	       size_t why_bytes);
void gate_result_fini(struct gate_result *r);

#endif
