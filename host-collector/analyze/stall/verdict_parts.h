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
int64_t cause_stopped_ns(const struct stall_facts *f);
int64_t cause_migration_ns(const struct stall_facts *f);
int64_t cause_lockup_ns(const struct stall_facts *f);
int64_t cause_split_lock_ns(const struct stall_facts *f);
int64_t cause_not_scheduled_ns(const struct stall_facts *f);
int64_t cause_quota_ns(const struct stall_facts *f);
int64_t cause_vmm_lock_ns(const struct stall_facts *f);
int64_t cause_block_io_ns(const struct stall_facts *f);
int64_t cause_paging_ns(const struct stall_facts *f);
int64_t cause_mmu_ns(const struct stall_facts *f);
int64_t cause_reclaim_ns(const struct stall_facts *f);
int64_t cause_storm_ns(const struct stall_facts *f);
int64_t cause_clock_step_ns(const struct stall_facts *f);
int64_t cause_lock_ns(const struct stall_facts *f);
int64_t cause_call_ns(const struct stall_facts *f);
int64_t cause_late_tick_ns(const struct stall_facts *f);
int64_t cause_lost_ns(const struct stall_facts *f);
int64_t cause_nested_ns(const struct stall_facts *f);
int64_t cause_device_ns(const struct stall_facts *f);
int64_t cause_spin_ns(const struct stall_facts *f);

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

/* because: write one sentence about `ns` of denied time (verdict_text.c). */
void because_stopped(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		     size_t n);
void because_migration(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		       size_t n);
void because_lockup(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		    size_t n);
void because_split_lock(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			size_t n);
void because_not_scheduled(const struct stall_facts *f, const struct model *m, int64_t ns,
			   char *out, size_t n);
void because_quota(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		   size_t n);
void because_lock(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		  size_t n);
void because_block_io(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		      size_t n);
void because_paging(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		    size_t n);
void because_mmu(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		 size_t n);
void because_reclaim(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		     size_t n);
void because_storm(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		   size_t n);
void because_spin(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		  size_t n);
void because_lock_owner(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			size_t n);
void because_call(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		  size_t n);
void because_device(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		    size_t n);
void because_clock_step(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			size_t n);
void because_nested(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		    size_t n);
void because_lost(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		  size_t n);
void because_late_tick(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		       size_t n);

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
/* Writes the VM of a culprit, for example "VM web2, vCPU 0". Adds a note if the name is a claim. */
struct holder_text {
	char text[200];
};
/* Returns the name of a host task, after its VM if it is a thread of a VMM. */
struct holder_text holder_text(const struct stall_facts *f, const struct model *m, int32_t pid);

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
