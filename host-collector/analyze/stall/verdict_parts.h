/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions that the rows of the verdict table (verdict.c) consist of. struct verdict_rule in
 * verdict.h describes each kind of function.
 */
#ifndef STALL_VERDICT_PARTS_H
#define STALL_VERDICT_PARTS_H

#include "host-collector/analyze/stall/facts.h"
#include "host-collector/analyze/stall/report.h"

/* accounts_for: return the denied time in ns that the cause accounts for (verdict_causes.c). */
#define X(NAME, name) int64_t cause_##name##_ns(const struct stall_facts *f);
VERDICTS(X)
#undef X

/* because: append the reason for a verdict to a list of REPORT_BECAUSE_MAX findings. ns: the denied
 * time that the cause accounts for (verdict_because.c). */
#define X(NAME, name)                                                                              \
	void because_##name(const struct stall_facts *f, const struct model *m, int64_t ns,        \
			    struct finding *out);
VERDICTS(X)
#undef X

/* contradicted: return true if something contradicts the cause (verdict_causes.c). */
bool against_clock_unproven(const struct stall_facts *f);
bool against_guest_was_alive(const struct stall_facts *f);
bool against_pause_unproven(const struct stall_facts *f);
bool against_few_samples(const struct stall_facts *f);
bool against_paging_unseen(const struct stall_facts *f);
bool against_split_lock_unseen(const struct stall_facts *f);
bool against_quota_uncounted(const struct stall_facts *f);
bool against_quota_unseen(const struct stall_facts *f);
bool against_guest_unproven(const struct stall_facts *f);
bool against_storm_unproven(const struct stall_facts *f);
bool against_spin_unproven(const struct stall_facts *f);
bool spin_may_be_wait(const struct stall_facts *f);
bool against_tick_unwanted(const struct stall_facts *f);
bool against_owner_unproven(const struct stall_facts *f);

/* A group of tasks with similar names, or of one cgroup, that held the pCPU
 * (verdict_culprits.c). */
struct culprits_sum {
	int32_t pid; /* the task that held the pCPU longest, for most_ns */
	unsigned n;  /* number of tasks */
	int64_t ns, most_ns;
	uint32_t cgroup; /* for model_cgroup_of(); 0: unknown or several */
};
/* Finds the group that held the pCPU longest. Returns false if no holder is known. */
bool culprits_largest(const struct stall_facts *f, const struct model *m, bool by_cgroup,
		      struct culprits_sum *out);
/* culprits: add the culprits to out->culprits, longest time first (verdict_culprits.c). */
void culprits_senders(const struct stall_facts *f, const struct model *m, struct incident *out);
void culprits_holders(const struct stall_facts *f, const struct model *m, struct incident *out);
void culprits_lock_holders(const struct stall_facts *f, const struct model *m,
			   struct incident *out);
void culprits_page_providers(const struct stall_facts *f, const struct model *m,
			     struct incident *out);
void culprits_of_lock_owner(const struct stall_facts *f, const struct model *m,
			    struct incident *out);
void culprits_of_call_target(const struct stall_facts *f, const struct model *m,
			     struct incident *out);
void culprits_guest_task(const struct stall_facts *f, const struct model *m, struct incident *out);

#endif
