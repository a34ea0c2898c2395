/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests every rule of the verdicts by a story that only this rule explains. */
#include "tests/unit/verdict_story.h"

struct expected {
	const char *name;
	void (*emit)(struct tale *t);
	enum verdict verdict;
	enum confidence confidence;
	enum guest_cpu_state kind;
	int64_t duration_us;
	enum vcpu_state state; /* which takes... */
	int64_t state_us;
	int32_t culprit; /* 0: none */
	bool culprit_in_host;
	uint32_t missing;
	enum verdict runner_up;
};

static void paused(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	ADD(t, SIGNAL(299900, QEMU, 900, 19));
	tale_away(t, 300000, 700000, 0x104, 0);
	tale_ticks(t, 700100, 710000, 50);
	ADD(t, SWITCH(VM, 710000, 0, 50, 42, 1));
}

/* QEMU's pause and migration, from which the model learns of them at these times. */
static void migrated(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	tale_vmm(t, 250000, NOTE_MIGRATION);
	tale_vmm(t, 300000, NOTE_VM_PAUSED);
	tale_away(t, 300100, 700000, VS_TASK_INTERRUPTIBLE, 0);
	tale_vmm(t, 699000, NOTE_MIGRATION_OVER);
	tale_vmm(t, 699900, NOTE_VM_RESUMED);
	tale_ticks(t, 700100, 710000, 50);
	ADD(t, SWITCH(VM, 710000, 0, 50, 42, 1));
}

/* Somebody writes to QEMU's monitor, and QEMU stops the VM. Others wake its main loop all the time.
 */
static void paused_through_its_monitor(struct tale *t)
{
	enum { MONITOR = 78 };

	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	ADD(t, EVENT(HOST, 200000, 0, TASK_NAME, MONITOR, QEMU, script_comm("IO mon_i"),
		     script_comm("othread")));
	ADD(t, WAKEUP(HOST, 299500, 1, MONITOR, 900, 1));
	ADD(t, WAKEUP(HOST, 299600, 1, MONITOR, 77, 1));
	ADD(t, WAKEUP(HOST, 299700, 1, QEMU, 500, 1));
	tale_vmm(t, 300000, NOTE_VM_PAUSED);
	tale_away(t, 300100, 700000, VS_TASK_INTERRUPTIBLE, 0);
	tale_vmm(t, 699900, NOTE_VM_RESUMED);
	tale_ticks(t, 700100, 710000, 50);
	ADD(t, SWITCH(VM, 710000, 0, 50, 42, 1));
}

/* The same, and frames of the host were lost: one may have announced a migration. */
static void paused_and_notes_lost(struct tale *t)
{
	paused_through_its_monitor(t);
	t->prepare = model_notes_lost;
}

/* A signal is an event and needs no note. */
static void stopped_and_notes_lost(struct tale *t)
{
	paused(t);
	t->prepare = model_notes_lost;
}

/* A migration that came only after the pause, and one that was over before, explain nothing. */
static void paused_beside_a_migration(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	tale_vmm(t, 210000, NOTE_MIGRATION);
	tale_vmm(t, 220000, NOTE_MIGRATION_OVER);
	tale_vmm(t, 300000, NOTE_VM_PAUSED);
	tale_vmm(t, 310000, NOTE_MIGRATION);
	tale_away(t, 300100, 700000, VS_TASK_INTERRUPTIBLE, 0);
	tale_vmm(t, 699900, NOTE_VM_RESUMED);
	tale_ticks(t, 700100, 710000, 50);
	ADD(t, SWITCH(VM, 710000, 0, 50, 42, 1));
}

static void not_scheduled(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 250000, 50);
	tale_away(t, 250000, 750000, VS_TASK_RUNNING, 500);
	ADD(t, SWITCH(VM, 760000, 0, 50, 42, 1));
}

/* A hundred tasks take turns on the pCPU for 5 ms each, one of them for 8. */
static void crowded_out(struct tale *t)
{
	enum { CROWD = 600, LONGEST = 640, LAST = 699 };
	int64_t at = 250000;
	int32_t runs = TID0;

	tale_begin(t);
	tale_ticks(t, 204000, 250000, 50);
	for (int32_t next = CROWD; next <= LAST; next++) {
		ADD(t, SWITCH(HOST, at, 0, runs, next, VS_TASK_RUNNING));
		at += next == LONGEST ? 8000 : 5000;
		runs = next;
	}
	ADD(t, SWITCH(HOST, at, 0, runs, TID0, VS_TASK_RUNNING));
	ADD(t, SWITCH(VM, 760000, 0, 50, 42, 1));
}

static void woken_but_not_scheduled(struct tale *t)
{
	tale_begin(t);
	ADD(t, SWITCH(VM, 201000, 0, 50, 0, 1)); /* the guest idles */
	ADD(t, SWITCH(HOST, 202000, 0, TID0, 500, 1));
	ADD(t, WAKEUP(HOST, 220000, 1, TID0, 77, 0));
	ADD(t, SWITCH(HOST, 720000, 0, 500, TID0, 0));
	ADD(t, SWITCH(VM, 720100, 0, 0, 50, 0));
	ADD(t, SWITCH(VM, 721000, 0, 50, 42, 1));
}

/* The host's log, or a quota, may be what was lost. */
static void not_scheduled_and_notes_lost(struct tale *t)
{
	not_scheduled(t);
	t->prepare = model_notes_lost;
}

/* Its task is ready to run and was preempted for 2 ms; the vCPU halts, for no reason that was seen.
 */
static void halted_though_busy(struct tale *t)
{
	tale_begin(t);
	ADD(t, KVM(1000, 0, EXIT, TID0, 1 | 1ull << 32));
	ADD(t, KVM(1001, 0, ENTRY, TID0, 0));
	tale_ticks(t, 204000, 300000, 50);
	ADD(t, WAKEUP(VM, 300100, 0, 60, 50, 0));
	tale_away(t, 300200, 302200, VS_TASK_RUNNING, 500);
	ADD(t, KVM(302201, 0, ENTRY, TID0, 0));
	ADD(t, KVM(303000, 0, EXIT, TID0, 12 | 1ull << 32)); /* HLT */
	tale_away(t, 303001, 699000, VS_TASK_INTERRUPTIBLE, 0);
	ADD(t, KVM(699001, 0, ENTRY, TID0, 0));
	ADD(t, SWITCH(VM, 700000, 0, 50, 60, 0));
}

static void lockup_of_the_pcpu(struct tale *t)
{
	not_scheduled(t);
	tale_log(t, 700000, "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [hog:500]");
}

static void lockup_of_another_pcpu(struct tale *t)
{
	not_scheduled(t);
	tale_log(t, 700000, "watchdog: Watchdog detected hard LOCKUP on cpu 3");
}

static void lockup_before(struct tale *t)
{
	not_scheduled(t);
	tale_log(t, 100000, "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [hog:500]");
}

/* Another task has the pCPU meanwhile: without the counter it would be blamed. */
static void quota_counted_and_pcpu_taken(struct tale *t)
{
	not_scheduled(t);
	quota_read(t, 2, 990000);
}

/* The counter tells of another vCPU's throttling, or of less than half of this wait. */
static void quota_of_another(struct tale *t)
{
	not_scheduled(t);
	quota_read(t, 4, 500000);
}

static void quota_counted_a_little(struct tale *t)
{
	not_scheduled(t);
	quota_read(t, 1, 90000);
}

/* It waits for one pCPU first because another task has it, then because it has no quota left; the
 * other vCPU of the group had none for as long. */
static void pcpu_taken_then_no_quota(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 250000, 50);
	ADD(t, SWITCH(HOST, 250000, 0, TID0, 500, VS_TASK_RUNNING));
	ADD(t, SWITCH(HOST, 450000, 0, 500, 0, 1));
	ADD(t, SWITCH(HOST, 750000, 0, 0, TID0, 0));
	ADD(t, SWITCH(VM, 760000, 0, 50, 42, 1));
	quota_read(t, 2, 600000);
}

static void disk(struct tale *t)
{
	sleep_with_stack(t, STACK_DISK, VS_TASK_UNINTERRUPTIBLE);
}

static void userfault(struct tale *t)
{
	sleep_with_stack(t, STACK_USERFAULT, VS_TASK_INTERRUPTIBLE);
}

static void mmap_lock(struct tale *t)
{
	sleep_with_stack(t, STACK_MMAP, VS_TASK_UNINTERRUPTIBLE);
}

static void reclaim(struct tale *t)
{
	sleep_with_stack(t, STACK_RECLAIM, VS_TASK_UNINTERRUPTIBLE);
}

static void split_lock(struct tale *t)
{
	sleep_with_stack(t, STACK_SPLIT_LOCK, VS_TASK_INTERRUPTIBLE);
}

/* The kernel named the thread at its first split lock, and no stack came. */
static void split_lock_in_the_log(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	tale_log(
		t, 150000,
		"x86/split lock detection: #AC: CPU 0/KVM/110 took a split_lock trap at address: 0x7");
	tale_away(t, 300000, 600000, VS_TASK_UNINTERRUPTIBLE, 0);
	ADD(t, SWITCH(VM, 610000, 0, 50, 42, 1));
}

static void split_lock_of_another_thread(struct tale *t)
{
	split_lock_in_the_log(t);
	tale_log(
		t, 150000,
		"x86/split lock detection: #AC: CPU 1/KVM/111 took a split_lock trap at address: 0x7");
}

static void no_stack(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	tale_away(t, 300000, 600000, VS_TASK_UNINTERRUPTIBLE, 0);
	ADD(t, SWITCH(VM, 610000, 0, 50, 42, 1));
}

static void spin_with_ticks(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 800000, 50);
	ADD(t, WAKEUP(VM, 210000, 0, 60, 50, 0));
	ADD(t, SWITCH(VM, 800000, 0, 50, 60, 0));
}

static void spin_without_ticks(struct tale *t)
{
	tale_begin(t);
	ADD(t, SWITCH(VM, 800000, 0, 50, 42, 0));
}

static void long_softirq(struct tale *t)
{
	tale_begin(t);
	ADD(t, IRQ(210000, 0, SOFTIRQ_ENTRY, 50, 6));
	tale_ticks(t, 212000, 800000, 50);
	ADD(t, IRQ(810000, 0, SOFTIRQ_EXIT, 50, 6));
	ADD(t, SWITCH(VM, 811000, 0, 50, 42, 1));
}

static void storm(struct tale *t)
{
	tale_begin(t);
	ADD(t, WAKEUP(VM, 210000, 0, 60, 50, 0));
	for (int64_t at = 210000; at < 800000; at += 250) {
		ADD(t, IRQ(at, 0, IRQ_ENTRY, 50, 24));
		ADD(t, IRQ(at + 200, 0, IRQ_EXIT, 50, 24));
	}
	for (int64_t at = 213000 + 210; at < 800000; at += TICK_US) {
		ADD(t, IRQ(at, 0, VECTOR_ENTRY, 50, VS_VECTOR_LOCAL_TIMER));
		ADD(t, IRQ(at + 5, 0, VECTOR_EXIT, 50, VS_VECTOR_LOCAL_TIMER));
	}
	ADD(t, SWITCH(VM, 800000, 0, 50, 60, 0));
}

static void two_causes(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	ADD(t, SIGNAL(299900, QEMU, 900, 19));
	tale_away(t, 300000, 600000, 0x104, 0);
	tale_away(t, 601000, 801000, VS_TASK_RUNNING, 500);
	ADD(t, SWITCH(VM, 810000, 0, 50, 42, 1));
}

static void two_causes_and_a_little(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	ADD(t, SIGNAL(299900, QEMU, 900, 19));
	tale_away(t, 300000, 500000, 0x104, 0);
	tale_away(t, 501000, 681000, VS_TASK_RUNNING, 500);
	tale_away(t, 682000, 722000, VS_TASK_UNINTERRUPTIBLE, 0);
	ADD(t, STACK(721999, WAITER, TID0, TID0, STACK_DISK, 40000));
	ADD(t, SWITCH(VM, 730000, 0, 50, 42, 1));
}

static void many_small_causes(struct tale *t)
{
	static const uint32_t stacks[] = {STACK_LOCK, STACK_DISK, STACK_MMAP};

	tale_begin(t);
	for (int i = 0; i < 3; i++) {
		int64_t from = 210000 + i * 110000;

		tale_away(t, from, from + 100000, VS_TASK_UNINTERRUPTIBLE, 0);
		ADD(t, STACK(from + 99999, WAITER, TID0, TID0, stacks[i], 100000));
		tale_ticks(t, from + 100001, from + 109000, 50);
	}
	ADD(t, SWITCH(VM, 600000, 0, 50, 42, 1));
}

static void unheld(struct tale *t)
{
	/* Its events on pCPU 0 are lost all along the stretch. */
	tale_begin(t);
	ADD(t, WAKEUP(VM, 210000, 0, 60, 50, 0));
	ADD(t, LOST(HOST, 200500, 0));
	ADD(t, SWITCH(HOST, 790000, 0, 5, TID0, 0));
	ADD(t, SWITCH(VM, 800000, 0, 50, 60, 0));
}

#define WITHOUT(NAME) (1u << MISSING_##NAME)

static const struct expected stalls[] = {
	{"VM stopped by a signal", paused, VERDICT_VM_PAUSED, CONFIDENCE_DECIDED, GUEST_CPU_TASK,
	 510000, VCPU_STOPPED, 400000, 900, true, WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"VM paused through QEMU's monitor", paused_through_its_monitor, VERDICT_VM_PAUSED,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 510000, VCPU_STOPPED, 399900, 900, true,
	 WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"VM paused by its VMM, notes lost", paused_and_notes_lost, VERDICT_VM_PAUSED,
	 CONFIDENCE_LIKELY, GUEST_CPU_TASK, 510000, VCPU_STOPPED, 399900, 900, true,
	 WITHOUT(KVM_EVENTS) | WITHOUT(NOTES), VERDICT_UNDETERMINED},
	{"VM stopped by a signal, notes lost", stopped_and_notes_lost, VERDICT_VM_PAUSED,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 510000, VCPU_STOPPED, 400000, 900, true,
	 WITHOUT(KVM_EVENTS) | WITHOUT(NOTES), VERDICT_UNDETERMINED},
	{"pCPU taken, notes lost", not_scheduled_and_notes_lost, VERDICT_VCPU_NOT_SCHEDULED,
	 CONFIDENCE_LIKELY, GUEST_CPU_TASK, 560000, VCPU_RUNNABLE, 500000, 500, true,
	 WITHOUT(KVM_EVENTS) | WITHOUT(NOTES), VERDICT_UNDETERMINED},
	{"halted with a task to run, preempted a little", halted_though_busy, VERDICT_UNDETERMINED,
	 CONFIDENCE_UNDETERMINED, GUEST_CPU_TASK, 500000, VCPU_HALTED, 395999, 0, true, 0,
	 VERDICT_UNDETERMINED},
	{"downtime of a migration", migrated, VERDICT_MIGRATION, CONFIDENCE_DECIDED, GUEST_CPU_TASK,
	 510000, VCPU_STOPPED, 399900, 0, true, WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"paused, and a migration before and after", paused_beside_a_migration, VERDICT_VM_PAUSED,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 510000, VCPU_STOPPED, 399900, 0, true,
	 WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"pCPU taken", not_scheduled, VERDICT_VCPU_NOT_SCHEDULED, CONFIDENCE_DECIDED,
	 GUEST_CPU_TASK, 560000, VCPU_RUNNABLE, 500000, 500, true, WITHOUT(KVM_EVENTS),
	 VERDICT_UNDETERMINED},
	{"pCPU taken by many in turn", crowded_out, VERDICT_VCPU_NOT_SCHEDULED, CONFIDENCE_DECIDED,
	 GUEST_CPU_TASK, 560000, VCPU_RUNNABLE, 503000, 640, true, WITHOUT(KVM_EVENTS),
	 VERDICT_UNDETERMINED},
	{"idle vCPU woken, pCPU taken", woken_but_not_scheduled, VERDICT_VCPU_NOT_SCHEDULED,
	 CONFIDENCE_DECIDED, GUEST_CPU_IDLE, 500000, VCPU_RUNNABLE, 500000, 500, true,
	 WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"runnable on an idle pCPU", quota, VERDICT_CGROUP_THROTTLED, CONFIDENCE_LIKELY,
	 GUEST_CPU_TASK, 560000, VCPU_RUNNABLE, 500000, 0, true, WITHOUT(KVM_EVENTS),
	 VERDICT_UNDETERMINED},
	{"throttled by the cgroup's counter", quota_counted, VERDICT_CGROUP_THROTTLED,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 560000, VCPU_THROTTLED, 500000, 0, true,
	 WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"throttled, and its pCPU taken", quota_counted_and_pcpu_taken, VERDICT_CGROUP_THROTTLED,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 560000, VCPU_THROTTLED, 500000, 0, true,
	 WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"pCPU taken, another vCPU throttled", quota_of_another, VERDICT_VCPU_NOT_SCHEDULED,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 560000, VCPU_RUNNABLE, 500000, 500, true,
	 WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"pCPU taken, throttled a little", quota_counted_a_little, VERDICT_VCPU_NOT_SCHEDULED,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 560000, VCPU_RUNNABLE, 500000, 500, true,
	 WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"pCPU taken, then no quota", pcpu_taken_then_no_quota, VERDICT_CGROUP_THROTTLED,
	 CONFIDENCE_LIKELY, GUEST_CPU_TASK, 560000, VCPU_THROTTLED, 500000, 500, true,
	 WITHOUT(KVM_EVENTS), VERDICT_VCPU_NOT_SCHEDULED},
	{"QEMU's big lock", big_lock, VERDICT_VMM_LOCK, CONFIDENCE_DECIDED, GUEST_CPU_TASK, 410000,
	 VCPU_BLOCKED, 300000, 77, true, WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"block I/O", disk, VERDICT_STORAGE_BACKEND, CONFIDENCE_DECIDED, GUEST_CPU_TASK, 410000,
	 VCPU_BLOCKED, 300000, 0, true, WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"userfault", userfault, VERDICT_DEMAND_PAGING, CONFIDENCE_DECIDED, GUEST_CPU_TASK, 410000,
	 VCPU_BLOCKED, 300000, 77, true, WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"mmap lock", mmap_lock, VERDICT_MMU_CONTENTION, CONFIDENCE_DECIDED, GUEST_CPU_TASK, 410000,
	 VCPU_BLOCKED, 300000, 0, true, WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"reclaim", reclaim, VERDICT_HOST_MEMORY, CONFIDENCE_DECIDED, GUEST_CPU_TASK, 410000,
	 VCPU_BLOCKED, 300000, 0, true, WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"the pCPU stands still, says the host", lockup_of_the_pcpu, VERDICT_HOST_LOCKUP,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 560000, VCPU_RUNNABLE, 500000, 500, true,
	 WITHOUT(KVM_EVENTS), VERDICT_VCPU_NOT_SCHEDULED},
	{"pCPU taken, another pCPU stands still", lockup_of_another_pcpu,
	 VERDICT_VCPU_NOT_SCHEDULED, CONFIDENCE_DECIDED, GUEST_CPU_TASK, 560000, VCPU_RUNNABLE,
	 500000, 500, true, WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"pCPU taken, it stood still before", lockup_before, VERDICT_VCPU_NOT_SCHEDULED,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 560000, VCPU_RUNNABLE, 500000, 500, true,
	 WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"slowed down for a split lock", split_lock, VERDICT_SPLIT_LOCK, CONFIDENCE_DECIDED,
	 GUEST_CPU_TASK, 410000, VCPU_BLOCKED, 300000, 0, true, WITHOUT(KVM_EVENTS),
	 VERDICT_UNDETERMINED},
	{"a split lock in the log, no stack", split_lock_in_the_log, VERDICT_SPLIT_LOCK,
	 CONFIDENCE_LIKELY, GUEST_CPU_TASK, 410000, VCPU_BLOCKED, 300000, 0, true,
	 WITHOUT(KVM_EVENTS) | WITHOUT(STACKS), VERDICT_UNDETERMINED},
	{"another thread's split lock in the log", split_lock_of_another_thread,
	 VERDICT_UNDETERMINED, CONFIDENCE_UNDETERMINED, GUEST_CPU_TASK, 410000, VCPU_BLOCKED,
	 300000, 0, true, WITHOUT(KVM_EVENTS) | WITHOUT(STACKS), VERDICT_UNDETERMINED},
	{"a host wait without a stack", no_stack, VERDICT_UNDETERMINED, CONFIDENCE_UNDETERMINED,
	 GUEST_CPU_TASK, 410000, VCPU_BLOCKED, 300000, 0, true,
	 WITHOUT(KVM_EVENTS) | WITHOUT(STACKS), VERDICT_UNDETERMINED},
	{"guest spins, ticks go on, a task waits", spin_with_ticks, VERDICT_GUEST_SPIN,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 600000, VCPU_GUEST, 600000, 50, false,
	 WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"guest spins with interrupts off", spin_without_ticks, VERDICT_GUEST_SPIN,
	 CONFIDENCE_LIKELY, GUEST_CPU_TASK, 600000, VCPU_GUEST, 600000, 50, false,
	 WITHOUT(KVM_EVENTS), VERDICT_UNDETERMINED},
	{"one long softirq", long_softirq, VERDICT_GUEST_SPIN, CONFIDENCE_DECIDED,
	 GUEST_CPU_SOFTIRQ, 600000, VCPU_GUEST, 600000, 50, false, WITHOUT(KVM_EVENTS),
	 VERDICT_UNDETERMINED},
	{"interrupt storm", storm, VERDICT_GUEST_IRQ_STORM, CONFIDENCE_DECIDED, GUEST_CPU_TASK,
	 600000, VCPU_GUEST, 600000, 50, false, WITHOUT(KVM_EVENTS), VERDICT_GUEST_SPIN},
	{"an idle CPU's vCPU stopped", tale_idle_and_stopped, VERDICT_VM_PAUSED, CONFIDENCE_DECIDED,
	 GUEST_CPU_IDLE, 399990, VCPU_STOPPED, 399990, 900, true, WITHOUT(KVM_EVENTS),
	 VERDICT_UNDETERMINED},
	{"stopped, and no agent", tale_silent_and_stopped, VERDICT_VM_PAUSED, CONFIDENCE_DECIDED,
	 GUEST_CPU_UNKNOWN, 400000, VCPU_STOPPED, 400000, 900, true,
	 WITHOUT(KVM_EVENTS) | WITHOUT(GUEST_EVENTS), VERDICT_UNDETERMINED},
	{"two causes", two_causes, VERDICT_VM_PAUSED, CONFIDENCE_LIKELY, GUEST_CPU_TASK, 610000,
	 VCPU_STOPPED, 300000, 900, true, WITHOUT(KVM_EVENTS), VERDICT_VCPU_NOT_SCHEDULED},
	{"two causes, neither half of it, nearly all together", two_causes_and_a_little,
	 VERDICT_VM_PAUSED, CONFIDENCE_LIKELY, GUEST_CPU_TASK, 530000, VCPU_STOPPED, 200000, 900,
	 true, WITHOUT(KVM_EVENTS), VERDICT_VCPU_NOT_SCHEDULED},
	{"three causes, none of them half of it", many_small_causes, VERDICT_VMM_LOCK,
	 CONFIDENCE_LIKELY, GUEST_CPU_TASK, 400000, VCPU_BLOCKED, 300000, 77, true,
	 WITHOUT(KVM_EVENTS), VERDICT_STORAGE_BACKEND},
	{"the host's events are lost", unheld, VERDICT_UNDETERMINED, CONFIDENCE_UNDETERMINED,
	 GUEST_CPU_TASK, 600000, VCPU_UNKNOWN, 590000, 0, true,
	 WITHOUT(KVM_EVENTS) | WITHOUT(LOST_EVENTS), VERDICT_UNDETERMINED},
};

static void every_cause_gets_its_verdict(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(stalls); k++) {
		const struct expected *e = &stalls[k];
		struct report *r = judge(e->emit, false);
		const struct incident *i = r->incidents;

		print_message("  %s: %s, %s, %s; denied: %s\n", e->name,
			      r->n_incidents ? verdict_name(i->verdict) : "no incident",
			      r->n_incidents ? confidence_name(i->confidence) : "",
			      r->n_incidents ? because_text(i).text : "",
			      r->n_incidents ? denied_text(i).text : "");
		assert_int_equal(r->n_incidents, 1);
		assert_balances(r);
		assert_int_equal(i->verdict, e->verdict);
		assert_int_equal(i->confidence, e->confidence);
		assert_int_equal(i->kind, e->kind);
		assert_int_equal(i->end.ns - i->begin.ns, e->duration_us * 1000);
		assert_int_equal(i->breakdown_ns[e->state], e->state_us * 1000);
		assert_int_equal(i->missing, e->missing);
		assert_int_equal(i->runner_up, e->runner_up);
		assert_false(i->ongoing);
		if (e->culprit) {
			assert_true(i->n_culprits >= 1);
			assert_int_equal(i->culprits[0].pid, e->culprit);
			assert_int_equal(i->culprits[0].host, e->culprit_in_host);
		} else {
			assert_int_equal(i->n_culprits, 0);
		}
		report_free(r);
	}
}

/* test_verdict_waits.c, test_verdict_locks.c and test_verdict_interrupts.c have it. */
static bool has_a_story_elsewhere(enum verdict v)
{
	return v == VERDICT_LOCK_HOLDER_PREEMPTED || v == VERDICT_IPI_TARGET_PREEMPTED ||
	       v == VERDICT_DEVICE_NO_COMPLETION || v == VERDICT_NESTED_UNOBSERVABLE ||
	       v == VERDICT_CLOCK_JUMP || v == VERDICT_INTERRUPT_LOST || v == VERDICT_TIMER_LATE;
}

static void every_rule_has_a_story(void **state)
{
	(void)state;
	for (size_t i = 0; i < verdict_rules_count; i++) {
		size_t stories = has_a_story_elsewhere(verdict_rules[i].verdict);

		for (size_t k = 0; k < COUNT(stalls); k++)
			stories += stalls[k].verdict == verdict_rules[i].verdict;
		if (!stories)
			fail_msg("no story for %s", verdict_name(verdict_rules[i].verdict));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cause_gets_its_verdict),
		cmocka_unit_test(every_rule_has_a_story),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
