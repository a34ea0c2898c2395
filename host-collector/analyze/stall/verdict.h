/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the cause of a stall from the facts of its interval. Each verdict is a row of one table
 * (verdict.c): how much of the denied time it accounts for, what contradicts it, which data it
 * needs. The row that accounts for the most time is the verdict, the next one is the runner-up.
 * docs/verdicts.md has the limits that decide the confidence, and view/verdict_words.c
 * the words.
 */
#ifndef STALL_VERDICT_H
#define STALL_VERDICT_H

#include "host-collector/analyze/stall/facts.h"
#include "host-collector/analyze/stall/report.h"

struct verdict_rule {
	enum verdict verdict;
	uint32_t needs; /* bit per enum missing_data; if any is missing, at most likely */
	/* Returns the denied time in ns that this cause accounts for; 0: none. */
	int64_t (*accounts_for)(const struct stall_facts *f);
	/* Returns true if something contradicts the cause; it is then at most likely. May be NULL.
	 */
	bool (*contradicted)(const struct stall_facts *f);
	/* Appends the reason to REPORT_BECAUSE_MAX findings. ns: the denied time. NULL if the
	 * sentence needs only that time (FINDING_CAUSE). */
	void (*because)(const struct stall_facts *f, const struct model *m, int64_t ns,
			struct finding *out);
	/* Adds the culprits to the incident. May be NULL. */
	void (*culprits)(const struct stall_facts *f, const struct model *m, struct incident *out);
};

extern const struct verdict_rule verdict_rules[];
extern const size_t verdict_rules_count;

/* Fills the incident from the facts: verdict, culprits, evidence, findings and detectors. Leaves
 * the dmesg times unset. Takes names from the model. */
void verdict_judge(const struct stall_facts *f, const struct model *m, struct incident *out);

/* Fills `out`, REPORT_BECAUSE_MAX findings, with the reason for a verdict that has a rule. ns: the
 * denied time that the cause accounts for. */
void verdict_because(enum verdict v, const struct stall_facts *f, const struct model *m, int64_t ns,
		     struct finding *out);

/* Removes the verdict, because the guest's times cannot be joined to the host's. */
void verdict_unjoin(struct incident *i);

#endif
