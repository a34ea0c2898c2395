/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the facts of a stretch to its cause. Every verdict is one row of one table (verdict.c): how
 * much of the denied time it accounts for, what contradicts it, what data it cannot do without.
 * All rows are measured; the one that accounts for most wins, the next is the runner-up. How sure
 * the answer is follows from shares alone, see docs/verdicts.md.
 */
#ifndef STALL_VERDICT_H
#define STALL_VERDICT_H

#include "host-collector/analyze/stall/facts.h"
#include "host-collector/analyze/stall/report.h"

struct verdict_rule {
	enum verdict verdict;
	const char *holds;       /* in words, for people */
	const char *contradicts; /* what would speak against it */
	uint32_t needs;          /* bits of enum missing_data: without them at most likely */
	/* Nanoseconds of denied time that this cause accounts for; 0: it does not hold. */
	int64_t (*accounts_for)(const struct stall_facts *f);
	/* Does something speak against it? Then it is at most likely. NULL: never. */
	bool (*contradicted)(const struct stall_facts *f);
	/* One plain sentence. */
	void (*because)(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			size_t out_bytes);
	/* Who did it, if a culprit is known. May be NULL. */
	void (*culprits)(const struct stall_facts *f, const struct model *m, struct incident *out);
};

extern const struct verdict_rule verdict_rules[];
extern const size_t verdict_rules_count;

/* Fills everything of `out`. The model tells names. */
void verdict_judge(const struct stall_facts *f, const struct model *m, struct incident *out);

/* Takes back whatever verdict joined the guest's side to the host's. */
void verdict_unjoin(struct incident *i);

#endif
