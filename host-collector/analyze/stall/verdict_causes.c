/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/verdict_parts.h"

/* ---- what each cause accounts for ---- */

int64_t cause_vm_paused_ns(const struct stall_facts *f)
{
	return f->state_ns[VCPU_STOPPED] - f->migration_ns;
}

int64_t cause_migration_ns(const struct stall_facts *f)
{
	return f->migration_ns;
}

int64_t cause_host_lockup_ns(const struct stall_facts *f)
{
	return f->lockup_ns;
}

int64_t cause_split_lock_ns(const struct stall_facts *f)
{
	return f->split_lock_ns;
}

int64_t cause_vcpu_not_scheduled_ns(const struct stall_facts *f)
{
	return f->pcpu_busy_ns;
}

int64_t cause_cgroup_throttled_ns(const struct stall_facts *f)
{
	return f->quota_ns + f->pcpu_idle_ns;
}

int64_t cause_vmm_lock_ns(const struct stall_facts *f)
{
	return f->class_ns[WAIT_VMM_LOCK];
}

int64_t cause_storage_backend_ns(const struct stall_facts *f)
{
	return f->class_ns[WAIT_BLOCK_IO];
}

int64_t cause_demand_paging_ns(const struct stall_facts *f)
{
	return f->class_ns[WAIT_USERFAULT] + f->class_ns[WAIT_PAGE_FAULT] + f->fault_ns;
}

int64_t cause_mmu_contention_ns(const struct stall_facts *f)
{
	return f->class_ns[WAIT_MMU_LOCK];
}

int64_t cause_host_memory_ns(const struct stall_facts *f)
{
	return f->class_ns[WAIT_RECLAIM];
}

/* Below this share of a CPU's time, handlers do not make tasks wait for the CPU. */
enum { STORM_SHARE_PERCENT = 60 };

int64_t cause_guest_irq_storm_ns(const struct stall_facts *f)
{
	if (!facts_storm(f, STORM_SHARE_PERCENT))
		return 0;
	return facts_denied_by_guest(f) < f->irq_ns ? facts_denied_by_guest(f) : f->irq_ns;
}

/* Whatever the vCPU did meanwhile, for the guest nothing happened during the step. */
int64_t cause_clock_jump_ns(const struct stall_facts *f)
{
	return f->clock_step_ns ? facts_duration(f) : 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t cause_lock_holder_preempted_ns(const struct stall_facts *f)
{
	return least(f->waits.lock_ns, facts_denied_by_guest(f));
}

int64_t cause_ipi_target_preempted_ns(const struct stall_facts *f)
{
	return least(f->waits.call_ns,
		     facts_denied_by_guest(f) - cause_lock_holder_preempted_ns(f));
}

/* Returns the time that the guest denied itself, without the time that storms and other vCPUs
 * explain. */
static int64_t alone_ns(const struct stall_facts *f)
{
	int64_t ns = facts_denied_by_guest(f) - cause_guest_irq_storm_ns(f) -
		     cause_lock_holder_preempted_ns(f) - cause_ipi_target_preempted_ns(f) -
		     f->tick_late_ns - f->lost.ns;

	return ns > 0 ? ns : 0;
}

int64_t cause_timer_late_ns(const struct stall_facts *f)
{
	return least(f->tick_late_ns, facts_denied_by_guest(f));
}

int64_t cause_interrupt_lost_ns(const struct stall_facts *f)
{
	return least(f->lost.ns, facts_denied_by_guest(f) - cause_timer_late_ns(f));
}

int64_t cause_nested_unobservable_ns(const struct stall_facts *f)
{
	return least(f->waits.nested_ns, alone_ns(f));
}

/* Returns the time in which the guest polled a register. Most of it is spent in the exits. */
static int64_t polled_ns(const struct stall_facts *f)
{
	int64_t exits = f->state_ns[VCPU_KVM] + f->state_ns[VCPU_VMM] - f->device_ns;

	return least(f->waits.poll_ns,
		     (exits > 0 ? exits : 0) + alone_ns(f) - cause_nested_unobservable_ns(f));
}

int64_t cause_device_no_completion_ns(const struct stall_facts *f)
{
	return f->device_ns + polled_ns(f);
}

int64_t cause_guest_spin_ns(const struct stall_facts *f)
{
	int64_t ns = alone_ns(f) - cause_nested_unobservable_ns(f);

	/* If the guest polls a device all the time, no part of it counts as a spin. */
	return ns - least(ns, f->waits.poll_ns);
}

/* ---- what speaks against a cause ---- */

/* Only the guest's answers show when it read its clock. They may be as false as the clock. */
bool against_clock_unproven(const struct stall_facts *f)
{
	return !f->clock_step_proven;
}

/* The guest's ticks cover time in which, by the host's events, the guest did not run. */
bool against_guest_was_alive(const struct stall_facts *f)
{
	int64_t out = facts_denied_by_host(f);

	return f->tick_interval_ns &&
	       f->ticks * f->tick_interval_ns >
		       facts_duration(f) - out + out / 4 + 2 * f->tick_interval_ns;
}

/* A thread that a signal, a tracer or the freezer stops has a task state of its own. A pause by
 * QEMU always looks like the same sleep; only QEMU's notes show that it migrates. */
bool against_pause_unproven(const struct stall_facts *f)
{
	static const uint32_t own_state = VS_TASK_STOPPED | VS_TASK_TRACED | VS_TASK_FROZEN;
	int64_t by_vmm = 0;

	for (unsigned i = 0; f->data.notes_lost && i < f->n_spans; i++) {
		const struct vcpu_span *s = &f->spans[i];

		if (s->state == VCPU_STOPPED && !s->migrates && !(s->task_state & own_state) &&
		    s->wait_class != WAIT_FREEZER)
			by_vmm += s->end.ns - s->begin.ns;
	}
	return by_vmm > 0 || against_guest_was_alive(f);
}

/* With this many samples of one class and none of another, the probability that the class has less
 * than 80 % of the time is below 5 %: 0.8^14 = 0.044. */
enum { SAMPLES_ENOUGH = 14 };

/* Much of the cause is short waits, and few of them have a stack. */
bool against_few_samples(const struct stall_facts *f)
{
	for (int c = 0; c < WAIT_CLASS_COUNT; c++) {
		if (f->inferred_ns[c] * 5 > facts_denied_by_host(f) &&
		    f->n_sampled[c] < SAMPLES_ENOUGH)
			return true;
	}
	return against_guest_was_alive(f);
}

/* No stack shows what the page fault waited for: memory or a lock. */
bool against_paging_unseen(const struct stall_facts *f)
{
	return f->fault_ns > cause_demand_paging_ns(f) / 2 || against_few_samples(f);
}

/* The kernel logs only a thread's first split lock, and no stack shows that the thread slept for
 * one. */
bool against_split_lock_unseen(const struct stall_facts *f)
{
	return f->class_ns[WAIT_SPLIT_LOCK] < f->split_lock_ns / 2 || against_guest_was_alive(f);
}

/* The kernel counts throttling after it has ended. Whether an ongoing wait is throttling is not
 * known yet. */
bool against_quota_uncounted(const struct stall_facts *f)
{
	return (f->ongoing && f->data.quota) || against_guest_was_alive(f);
}

/* The throttling itself was not seen, only that the pCPU was idle. */
bool against_quota_unseen(const struct stall_facts *f)
{
	return f->quota_ns < f->pcpu_idle_ns || against_guest_was_alive(f);
}

/* Neither KVM's events nor the guest's ticks show that guest code ran; or most of the time of the
 * vCPU was not captured, and only ticks show it. */
bool against_guest_unproven(const struct stall_facts *f)
{
	if (f->state_ns[VCPU_UNKNOWN] * 2 > facts_duration(f))
		return true;
	return !f->data.kvm_events &&
	       !(f->tick_interval_ns && f->ticks * f->tick_interval_ns > facts_duration(f) / 2);
}

/* If more than a few interrupts are missing, the times at which the storm began and ended are not
 * known well enough: it may have been shorter than the threshold. */
bool against_storm_unproven(const struct stall_facts *f)
{
	return against_guest_unproven(f) || f->n_lost * 200 > f->n_seen;
}

/* The time may have been a wait for another vCPU: the host kept one from the guest meanwhile, and
 * spins cause no events here, or their events may be missing. */
bool spin_may_be_wait(const struct stall_facts *f)
{
	return !f->sampled.computing &&
	       (!f->data.kvm_events || f->waits.lossy || f->waits.spins_unseen) &&
	       f->waits.peer_kept_ns > cause_guest_spin_ns(f) / 2;
}

/* The stall exceeds the threshold by less than the error of the guest's stamps. */
static bool may_be_shorter(const struct stall_facts *f)
{
	return (int64_t)(f->begin_err_ns + f->err_ns) > facts_denial_ns(f) - f->than_ns;
}

/* A task that waits may be charged for an earlier stall, or spin for something that another CPU
 * of the guest holds. If some of KVM's events are missing, a late timer interrupt looks like a
 * spin too. If short handlers are only counted, a storm of interrupts does. No event shows what an
 * idle CPU did that took an interrupt late. */
bool against_spin_unproven(const struct stall_facts *f)
{
	return against_guest_unproven(f) || may_be_shorter(f) || f->tick_unexplained ||
	       f->data.handlers_counted || f->waits.lossy || f->n_lost || f->debt.ns ||
	       f->sampled.spinning || f->guest_peer.known || spin_may_be_wait(f) || f->late.ns;
}

/* A guest may stop the tick of a CPU that has one task to run. */
bool against_tick_unwanted(const struct stall_facts *f)
{
	return f->waiter_ns < f->than_ns;
}

/* Only the end of the wait, or samples, connect the stall with the other vCPU; or the events that
 * would show what the guest waited for may be missing. Or the interrupted task waits for the other
 * vCPU, and no event shows that the interrupt does. */
bool against_owner_unproven(const struct stall_facts *f)
{
	return f->waits.coincidence || f->waits.sampled || f->waits.lossy || f->waits.called_before;
}
