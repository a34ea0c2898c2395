/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/stall/describe.h"
#include "host-collector/analyze/stall/detectors.h"
#include "host-collector/analyze/stall/verdict_parts.h"

/* ---- the table ---- */

#define NEEDS(NAME) (1u << MISSING_##NAME)

const struct verdict_rule verdict_rules[] = {
	{VERDICT_CLOCK_JUMP, NEEDS(GUEST_EVENTS), cause_clock_jump_ns, against_clock_unproven,
	 because_clock_jump, NULL},
	{VERDICT_VM_PAUSED, NEEDS(HOST_EVENTS), cause_vm_paused_ns, against_pause_unproven,
	 because_vm_paused, culprits_senders},
	{VERDICT_MIGRATION, NEEDS(HOST_EVENTS), cause_migration_ns, against_guest_was_alive, NULL,
	 NULL},
	{VERDICT_HOST_LOCKUP, NEEDS(HOST_EVENTS), cause_host_lockup_ns, against_guest_was_alive,
	 NULL, NULL}, /* VCPU_NOT_SCHEDULED names the task that held the pCPU */
	{VERDICT_SPLIT_LOCK, NEEDS(HOST_EVENTS), cause_split_lock_ns, against_split_lock_unseen,
	 NULL, NULL},
	{VERDICT_VCPU_NOT_SCHEDULED, NEEDS(HOST_EVENTS) | NEEDS(NOTES), cause_vcpu_not_scheduled_ns,
	 against_quota_uncounted, because_vcpu_not_scheduled, culprits_holders},
	{VERDICT_CGROUP_THROTTLED, NEEDS(HOST_EVENTS), cause_cgroup_throttled_ns,
	 against_quota_unseen, because_cgroup_throttled, NULL},
	{VERDICT_VMM_LOCK, NEEDS(HOST_EVENTS), cause_vmm_lock_ns, against_few_samples,
	 because_vmm_lock, culprits_lock_holders},
	{VERDICT_STORAGE_BACKEND, NEEDS(HOST_EVENTS), cause_storage_backend_ns, against_few_samples,
	 NULL, NULL},
	{VERDICT_DEMAND_PAGING, NEEDS(HOST_EVENTS), cause_demand_paging_ns, against_paging_unseen,
	 because_demand_paging, culprits_page_providers},
	{VERDICT_MMU_CONTENTION, NEEDS(HOST_EVENTS), cause_mmu_contention_ns, against_few_samples,
	 NULL, NULL},
	{VERDICT_HOST_MEMORY, NEEDS(HOST_EVENTS), cause_host_memory_ns, against_few_samples, NULL,
	 NULL},
	{VERDICT_LOCK_HOLDER_PREEMPTED,
	 NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS) | NEEDS(KVM_EVENTS),
	 cause_lock_holder_preempted_ns, against_owner_unproven, because_lock_holder_preempted,
	 culprits_of_lock_owner},
	{VERDICT_IPI_TARGET_PREEMPTED, NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS) | NEEDS(KVM_EVENTS),
	 cause_ipi_target_preempted_ns, against_owner_unproven, because_ipi_target_preempted,
	 culprits_of_call_target},
	{VERDICT_DEVICE_NO_COMPLETION, NEEDS(HOST_EVENTS) | NEEDS(KVM_EVENTS),
	 cause_device_no_completion_ns, against_guest_was_alive, because_device_no_completion,
	 NULL},
	{VERDICT_NESTED_UNOBSERVABLE,
	 NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS) | NEEDS(KVM_EVENTS) | NEEDS(LOST_EVENTS),
	 cause_nested_unobservable_ns, against_guest_unproven, because_nested_unobservable, NULL},
	{VERDICT_INTERRUPT_LOST,
	 NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS) | NEEDS(KVM_EVENTS) | NEEDS(LOST_EVENTS),
	 cause_interrupt_lost_ns, NULL, because_interrupt_lost, NULL},
	{VERDICT_TIMER_LATE,
	 NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS) | NEEDS(KVM_EVENTS) | NEEDS(LOST_EVENTS),
	 cause_timer_late_ns, against_tick_unwanted, NULL, NULL},
	{VERDICT_GUEST_IRQ_STORM, NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS),
	 cause_guest_irq_storm_ns, against_storm_unproven, because_guest_irq_storm,
	 culprits_guest_task},
	{VERDICT_GUEST_SPIN, NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS), cause_guest_spin_ns,
	 against_spin_unproven, because_guest_spin, culprits_guest_task},
};

const size_t verdict_rules_count = sizeof(verdict_rules) / sizeof(*verdict_rules);

/* ---- the judge ---- */

/* Shares of the denied time in percent: DECIDES makes a verdict decided, LIKELY makes it likely,
 * MENTIONED is enough to be listed as a cause. docs/verdicts.md gives the reasons. */
enum { DECIDES = 80, LIKELY = 50, MENTIONED = 10 };

static uint32_t missing_of(const struct stall_facts *f)
{
	uint32_t missing = 0;

	if (!f->data.kvm_events)
		missing |= NEEDS(KVM_EVENTS);
	if (!f->data.guest_events)
		missing |= NEEDS(GUEST_EVENTS);
	if (f->data.handlers_counted)
		missing |= NEEDS(HANDLERS);
	if (!f->data.host_events)
		missing |= NEEDS(HOST_EVENTS);
	else if (f->state_ns[VCPU_UNKNOWN] > 0 || f->cut || f->n_lost)
		missing |= NEEDS(LOST_EVENTS);
	if (f->data.notes_lost)
		missing |= NEEDS(NOTES);
	if (f->class_ns[WAIT_NONE] >= f->than_ns / 4)
		missing |= NEEDS(STACKS);
	/* The error of the times is too large compared with the threshold. */
	if (f->data.guest_events && f->err_ns > (uint64_t)f->than_ns / 2)
		missing |= NEEDS(CLOCK_MAP);
	if (f->data.guest_events && f->data.is_protected)
		missing |= NEEDS(CLOCK_PROOF);
	return missing;
}

/* The part of the denied time whose state is unknown. */
static int64_t unknown_ns(const struct stall_facts *f)
{
	int64_t evidently_ran = facts_ran(f) - f->state_ns[VCPU_GUEST];

	return f->state_ns[VCPU_UNKNOWN] - evidently_ran;
}

/* Returns true if this run interval of the guest cannot be joined to the host's times. */
static bool unjoined(const struct stall_facts *f)
{
	return f->data.guest_events && f->kind != GUEST_CPU_UNKNOWN && f->err_ns >= UINT32_MAX;
}

/* Returns true if a verdict by this rule joins what the guest reported to what the host saw. */
static bool joins(const struct stall_facts *f, const struct verdict_rule *rule)
{
	return f->kind != GUEST_CPU_UNKNOWN || rule->needs & NEEDS(GUEST_EVENTS);
}

/* Replaces the reason. */
static void because_set(struct incident *i, struct finding f)
{
	memset(i->because, 0, sizeof(i->because));
	i->because[0] = f;
}

void verdict_unjoin(struct incident *i)
{
	i->verdict = i->runner_up = VERDICT_UNDETERMINED;
	i->confidence = CONFIDENCE_UNDETERMINED;
	i->n_culprits = i->n_groups = i->n_causes = 0;
	because_set(i, (struct finding){.kind = FINDING_TIMES_UNPROVEN});
}

/* Returns the part of the longest wait or tick gap in which the vCPU halted, as far as no facts
 * show what the guest waited for. A guest with a task or a handler to run does not halt, so
 * something that would explain this was not captured. */
static int64_t halted_ns(const struct stall_facts *f)
{
	int64_t ns = facts_denial_ns(f) - (facts_duration(f) - f->state_ns[VCPU_HALTED]);

	ns -= f->waits.lock_halted_ns + f->guest_peer.halted_ns + f->lost.ns + f->tick_late_ns;
	return facts_halts_wait(f) && ns > 0 ? ns : 0;
}

/* All denied time, whatever the cause, including time whose state is unknown. */
static int64_t denied_ns(const struct stall_facts *f)
{
	return facts_denied_by_host(f) + facts_denied_by_guest(f) + unknown_ns(f) + halted_ns(f);
}

/* Fills in the incident's causes and culprits: of all rules that account for a tenth of what was
 * denied. */
static void rank(const struct stall_facts *f, const struct model *m, int64_t all,
		 struct incident *out)
{
	out->n_causes = out->n_culprits = out->n_groups = 0;
	for (size_t i = 0; i < verdict_rules_count; i++) {
		int64_t ns = verdict_rules[i].accounts_for(f);
		size_t at = out->n_causes;

		if (ns <= 0 || ns * 100 < all * MENTIONED)
			continue;
		if (verdict_rules[i].culprits)
			verdict_rules[i].culprits(f, m, out);
		for (size_t k = 0; k < out->n_culprits; k++) {
			if (out->culprits[k].cause == VERDICT_UNDETERMINED)
				out->culprits[k].cause = verdict_rules[i].verdict;
		}
		for (; at && out->causes[at - 1].ns < ns; at--) {
			if (at < REPORT_CAUSES_MAX)
				out->causes[at] = out->causes[at - 1];
		}
		if (at < REPORT_CAUSES_MAX)
			out->causes[at] = (struct report_cause){verdict_rules[i].verdict, ns};
		out->n_causes += out->n_causes < REPORT_CAUSES_MAX;
	}
}

/* Returns true if one cause explains half of `all`, or all causes together explain most of it. */
static bool explained(const struct incident *i, int64_t all)
{
	int64_t sum = 0;

	for (size_t k = 0; k < i->n_causes; k++)
		sum += i->causes[k].ns;
	return i->n_causes && (i->causes[0].ns * 100 >= all * LIKELY || sum * 100 >= all * DECIDES);
}

static const struct verdict_rule *rule_of(enum verdict verdict)
{
	const struct verdict_rule *rule = verdict_rules;

	while (rule->verdict != verdict)
		rule++;
	return rule;
}

/* Names all causes, because none of them explains half of `all` ns. */
static void because_shared(struct incident *i, int64_t all)
{
	_Static_assert(REPORT_BECAUSE_MAX >= REPORT_CAUSES_MAX, "one finding for each cause");
	memset(i->because, 0, sizeof(i->because));
	for (size_t k = 0; k < i->n_causes; k++)
		i->because[k] = (struct finding){.kind = k ? FINDING_FURTHER_CAUSE
							   : FINDING_NO_SINGLE_CAUSE,
						 .n = {i->causes[k].verdict},
						 .ns = {i->causes[k].ns, all}};
}

void verdict_because(enum verdict v, const struct stall_facts *f, const struct model *m, int64_t ns,
		     struct finding *out)
{
	const struct verdict_rule *rule = rule_of(v);

	memset(out, 0, REPORT_BECAUSE_MAX * sizeof(*out));
	if (rule->because)
		rule->because(f, m, ns, out);
	else
		out[0] = (struct finding){.kind = FINDING_CAUSE, .n = {v}, .ns = {ns}};
}

/* Returns true if a rule explains the stall. surely: the facts contain no assumption. */
static bool judge_by(const struct stall_facts *f, const struct model *m, bool surely,
		     struct incident *out)
{
	int64_t all = denied_ns(f), unknown = unknown_ns(f);
	const struct report_cause *best = out->causes;
	const struct verdict_rule *rule;
	bool sure;

	rank(f, m, all, out);
	out->runner_up = VERDICT_UNDETERMINED;
	if (!out->n_causes) {
		because_set(out, (struct finding){.kind = FINDING_NO_EXPLANATION, .ns = {all}});
		return false;
	}
	/* For time that is unknown because events were lost, the time around it is the best
	 * evidence. */
	if (!explained(out, all) && (surely || !explained(out, all - unknown))) {
		out->runner_up = best->verdict;
		because_set(out, (struct finding){.kind = FINDING_NO_CAUSE_OF_HALF,
						  .n = {best->verdict},
						  .ns = {best->ns, all}});
		return false;
	}
	rule = rule_of(best->verdict);
	sure = surely && !f->cut && best->ns * 100 >= all * DECIDES &&
	       !(rule->needs & out->missing) && !(out->missing & NEEDS(CLOCK_MAP)) &&
	       !(out->missing & NEEDS(CLOCK_PROOF) && joins(f, rule)) &&
	       !(rule->contradicted && rule->contradicted(f));
	out->verdict = rule->verdict;
	out->runner_up = out->n_causes > 1 ? out->causes[1].verdict : VERDICT_UNDETERMINED;
	out->confidence = sure ? CONFIDENCE_DECIDED : CONFIDENCE_LIKELY;
	if (out->n_causes > 2 && best->ns * 100 < all * LIKELY)
		because_shared(out, all);
	else
		verdict_because(rule->verdict, f, m, best->ns, out->because);
	return true;
}

static void judge(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	struct stall_facts *presumed;

	if (unjoined(f)) {
		verdict_unjoin(out);
		return;
	}
	if (judge_by(f, m, true, out))
		return;
	presumed = malloc(sizeof(*presumed));
	if (presumed && facts_presume(f, presumed))
		judge_by(presumed, m, false, out);
	else if (f->state_ns[VCPU_UNKNOWN] > 0)
		judge_by(f, m, false, out);
	free(presumed);
}

/* Describes the quota of the vCPU's longest throttled wait. */
static void quota_fill(const struct stall_facts *f, const struct model *m, struct report_quota *out)
{
	const struct cgroup *c = model_cgroup_of(m, facts_quota(f));

	if (!c)
		return;
	describe(out->cgroup, sizeof(out->cgroup), "%s", c->path);
	out->quota_us = c->quota_us;
	out->period_us = c->period_us;
}

static void lost_interrupt(const struct stall_facts *f, const struct model *m,
			   struct report_lost_interrupt *out)
{
	const struct facts_lost *l = &f->lost;

	if (l->ns <= 0)
		return;
	*out = (struct report_lost_interrupt){.known = true,
					      .source = l->source,
					      .vector = l->vector,
					      .irq = l->irq,
					      .begin = l->begin,
					      .pending_ns = l->ns,
					      .handled = !l->open,
					      .raiser_pid = l->raiser};
	describe(out->raiser_comm, sizeof(out->raiser_comm), "%s",
		 model_task_name(m, VS_SOURCE_HOST, l->raiser));
}

static void pcpu_fill(const struct stall_facts *f, struct incident *out)
{
	int64_t longest = 0;

	for (unsigned i = 0; i < f->n_spans; i++) {
		const struct vcpu_span *s = &f->spans[i];

		if (s->state == VCPU_UNKNOWN || s->end.ns - s->begin.ns <= longest)
			continue;
		longest = s->end.ns - s->begin.ns;
		out->pcpu = s->pcpu;
		out->pcpu_known = true;
	}
}

void verdict_judge(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	memset(out, 0, sizeof(*out));
	out->vm = f->vm;
	out->guest_cpu = f->cpu;
	out->vcpu = f->vcpu_known ? f->vcpu : f->cpu;
	out->healthy = !f->denied;
	out->kind = f->kind;
	out->task_pid = f->pid;
	describe(out->task_comm, sizeof(out->task_comm), "%s",
		 f->kind == GUEST_CPU_IDLE ? "idle" : model_task_name(m, f->vm, f->pid));
	out->number = f->number;
	out->vector = f->vector;
	out->begin = f->begin;
	out->end = f->end;
	out->err_ns = f->err_ns;
	out->ongoing = f->ongoing;
	out->short_waits = f->n_pieces;
	out->aftershock_ns = f->debt.ns;
	out->aftershock_of = f->debt.begin;
	memcpy(out->breakdown_ns, f->state_ns, sizeof(out->breakdown_ns));
	out->missing = missing_of(f);
	describe_denied(f, m, out->denied);
	describe_evidence(f, m, out);
	lost_interrupt(f, m, &out->lost_interrupt);
	pcpu_fill(f, out);
	quota_fill(f, m, &out->quota);
	if (!out->healthy)
		judge(f, m, out);
	out->device_known = f->block_device_known && out->verdict == VERDICT_STORAGE_BACKEND;
	out->device = f->block_device;
	detectors_fill(f, m, out);
}
