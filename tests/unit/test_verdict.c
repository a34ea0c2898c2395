/* SPDX-License-Identifier: GPL-2.0-only */
/* From events to verdicts: every rule by a story that only it explains, and stories that are no
 * stall at all. */
#include "host-collector/view/culprit_text.h"
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_tale.h"

#include "host-collector/analyze/stall/verdict.h"
#include "tests/unit/balance.h"

enum { STACK_LOCK = 1, STACK_DISK, STACK_USERFAULT, STACK_MMAP, STACK_RECLAIM, STACK_SPLIT_LOCK };

static struct tale tale;

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

static void quota(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 250000, 50);
	tale_away(t, 250000, 750000, VS_TASK_RUNNING, 0);
	ADD(t, SWITCH(VM, 760000, 0, 50, 42, 1));
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

/* Readings every 100 ms; the last one, after the wait, shows what it cost. */
static void quota_read(struct tale *t, uint32_t n_vcpus, int64_t throttled_us)
{
	for (int64_t at = 100000; at < 900000; at += 100000)
		tale_quota(t, at - 100000, at, n_vcpus, at == 800000 ? throttled_us : 0);
}

static void quota_counted(struct tale *t)
{
	quota(t);
	quota_read(t, 1, 499000);
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

static void sleep_with_stack(struct tale *t, uint32_t stack, uint32_t state)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	tale_away(t, 300000, 600000, state, 0);
	ADD(t, STACK(599999, WAITER, TID0, TID0, stack, 300000));
	ADD(t, SWITCH(VM, 610000, 0, 50, 42, 1));
}

static void big_lock(struct tale *t)
{
	sleep_with_stack(t, STACK_LOCK, VS_TASK_INTERRUPTIBLE);
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

static void stacks(struct model *m)
{
	static const struct {
		uint32_t id;
		const char *symbols[3];
	} table[] = {
		{STACK_LOCK, {"futex_wait", "__lll_lock_wait", "qemu_mutex_lock_iothread_impl"}},
		{STACK_DISK, {"io_schedule", "folio_wait_bit_common", "vfs_read"}},
		{STACK_USERFAULT, {"schedule", "handle_userfault", "do_user_addr_fault"}},
		{STACK_MMAP, {"schedule", "rwsem_down_read_slowpath", "do_user_addr_fault"}},
		{STACK_RECLAIM, {"io_schedule", "shrink_lruvec", "try_to_free_pages"}},
		{STACK_SPLIT_LOCK, {"schedule_timeout", "msleep_interruptible", "split_lock_warn"}},
	};

	for (size_t i = 0; i < COUNT(table); i++)
		script_stack(m, table[i].id, TID0, table[i].symbols, 3);
}

static struct report *judge(void (*emit)(struct tale *t), bool all)
{
	struct report_options options = {.than_ns = 100000000, .all = all};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct report *r;

	script_vm(m, 1, "tcg");
	stacks(m);
	emit(&tale);
	tale_play(&tale, m);
	model_finish(m);
	r = report_builder_finish(b);
	assert_non_null(r);
	report_builder_free(b);
	model_free(m);
	return r;
}

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

static void paused_before_a_long_interrupt(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	ADD(t, SIGNAL(299900, QEMU, 900, 19));
	tale_away(t, 300000, 700000, 0x104, 0);
	ADD(t, IRQ(700100, 0, VECTOR_ENTRY, 50, VS_VECTOR_LOCAL_TIMER));
	tale_away(t, 701000, 901000, VS_TASK_RUNNING, 500);
	ADD(t, IRQ(901100, 0, VECTOR_EXIT, 50, VS_VECTOR_LOCAL_TIMER));
	ADD(t, SWITCH(VM, 910000, 0, 50, 42, 1));
}

/* What lay in the stretch before its interrupt is not lost with it. */
static void a_pause_before_a_long_interrupt_is_told(void **state)
{
	struct report *r = judge(paused_before_a_long_interrupt, false);

	(void)state;
	assert_int_equal(r->n_incidents, 2);
	assert_int_equal(r->incidents[0].verdict, VERDICT_VM_PAUSED);
	assert_int_equal(r->incidents[0].begin.ns, 200000000);
	assert_int_equal(r->incidents[0].end.ns, 700100000);
	assert_int_equal(r->incidents[0].breakdown_ns[VCPU_STOPPED], 400000000);
	assert_int_equal(r->incidents[1].verdict, VERDICT_VCPU_NOT_SCHEDULED);
	assert_int_equal(r->incidents[1].begin.ns, 700100000);
	assert_int_equal(r->incidents[1].breakdown_ns[VCPU_RUNNABLE], 200000000);
	assert_balances(r);
	report_free(r);
}

/* Stopped, then in another's turn, then asleep in QEMU's lock: each about a third. */
static void three_causes(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	ADD(t, WAKEUP(VM, 299000, 0, 60, 50, 0));
	ADD(t, SIGNAL(299900, QEMU, 900, 19));
	tale_away(t, 300000, 440000, 0x104, 0);
	tale_away(t, 440100, 580000, VS_TASK_RUNNING, 500);
	tale_away(t, 580100, 700000, VS_TASK_INTERRUPTIBLE, 0);
	ADD(t, STACK(700001, WAITER, TID0, TID0, STACK_LOCK, 119900));
	ADD(t, SWITCH(VM, 710000, 0, 50, 60, 0));
}

static void three_causes_are_named_with_their_shares(void **state)
{
	struct report *r = judge(three_causes, false);
	const struct incident *i = r->incidents;

	(void)state;
	assert_int_equal(r->n_incidents, 1);
	assert_balances(r);
	assert_int_equal(i->confidence, CONFIDENCE_LIKELY);
	assert_int_equal(i->n_causes, 3);
	assert_int_equal(i->causes[0].verdict, VERDICT_VM_PAUSED);
	assert_int_equal(i->causes[0].ns, 140000000);
	assert_int_equal(i->causes[1].verdict, VERDICT_VCPU_NOT_SCHEDULED);
	assert_int_equal(i->causes[1].ns, 139900000);
	assert_int_equal(i->causes[2].verdict, VERDICT_VMM_LOCK);
	assert_int_equal(i->verdict, VERDICT_VM_PAUSED);
	assert_int_equal(i->runner_up, VERDICT_VCPU_NOT_SCHEDULED);
	assert_non_null(strstr(because_text(i).text, "no single cause: vm_paused took 140 ms"));
	assert_true(i->n_culprits >= 2);
	report_free(r);
}

/* Most of a wait for a pCPU is unknown; before and after it the vCPU waited. */
static void runnable_but_for_lost_events(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	ADD(t, WAKEUP(VM, 299000, 0, 60, 50, 0));
	ADD(t, SWITCH(HOST, 300000, 0, TID0, 500, 0));
	ADD(t, EVENT(HOST, 350000, 0, LOST, 0, 0, 2, 1));
	ADD(t, SWITCH(HOST, 650000, 0, 500, 501, 0));
	ADD(t, SWITCH(HOST, 700000, 0, 501, TID0, 0));
	ADD(t, SWITCH(VM, 710000, 0, 50, 60, 0));
}

static void what_was_seen_around_a_gap_makes_likely(void **state)
{
	struct report *r = judge(runnable_but_for_lost_events, false);
	const struct incident *i = r->incidents;

	(void)state;
	assert_int_equal(r->n_incidents, 1);
	assert_balances(r);
	assert_int_equal(i->breakdown_ns[VCPU_UNKNOWN], 300000000);
	assert_int_equal(i->verdict, VERDICT_VCPU_NOT_SCHEDULED);
	assert_int_equal(i->confidence, CONFIDENCE_LIKELY);
	assert_true(i->missing & 1u << MISSING_LOST_EVENTS);
	report_free(r);
}

/* As `spins` in every respect, but for one event of the host's that is missing. */
static void spins_but_for_a_lost_event(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	ADD(t, KVM(204001, 0, EXIT, TID0, 1 | 1ull << 32));
	ADD(t, KVM(204002, 0, ENTRY, TID0, 0));
	ADD(t, WAKEUP(VM, 301000, 0, 60, 50, 0));
	ADD(t, EVENT(HOST, 500000, 1, LOST, 0, 0, 1, 1));
	ADD(t, SWITCH(HOST, 500100, 1, 7, 8, 1));
	ADD(t, SWITCH(VM, 710000, 0, 50, 60, 0));
}

static void a_spin_is_not_decided_by_what_was_not_seen(void **state)
{
	struct report *r = judge(spins_but_for_a_lost_event, false);

	(void)state;
	assert_int_equal(r->n_incidents, 1);
	assert_int_equal(r->incidents[0].verdict, VERDICT_GUEST_SPIN);
	assert_int_equal(r->incidents[0].confidence, CONFIDENCE_LIKELY);
	report_free(r);
}

/* Task 50 is current while the VM is stopped; its kernel lets it wait afterwards for 60. */
static void aftershock(struct tale *t, int64_t later_us)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	ADD(t, SIGNAL(299900, QEMU, 900, 19));
	tale_away(t, 300000, 450000, 0x104, 0);
	if (later_us) {
		ADD(t, SWITCH(VM, 451000, 0, 50, 42, 1));
		tale_ticks(t, 452000, 451000 + later_us, 42);
		ADD(t, WAKEUP(VM, 450500 + later_us, 0, 50, 42, 0));
		ADD(t, SWITCH(VM, 451000 + later_us, 0, 42, 60, 1));
	} else {
		ADD(t, SWITCH(VM, 451000, 0, 50, 60, 0));
	}
	tale_ticks(t, 452000 + later_us, 580000 + later_us, 60);
	ADD(t, SWITCH(VM, 580000 + later_us, 0, 60, 50, 0));
	ADD(t, SWITCH(VM, 590000 + later_us, 0, 50, 42, 1));
}

static void aftershock_at_once(struct tale *t)
{
	aftershock(t, 0);
}

static void no_aftershock(struct tale *t)
{
	aftershock(t, 400000);
}

static void who_pays_for_a_pause_blames_nobody_for_sure(void **state)
{
	struct report *r = judge(aftershock_at_once, false);
	const struct incident *i = &r->incidents[1];

	(void)state;
	assert_int_equal(r->n_incidents, 2);
	assert_int_equal(r->incidents[0].verdict, VERDICT_VM_PAUSED);
	assert_int_equal(i->begin.ns, 451000000);
	assert_int_equal(i->verdict, VERDICT_GUEST_SPIN);
	assert_int_equal(i->confidence, CONFIDENCE_LIKELY);
	assert_non_null(
		strstr(because_text(i).text,
		       "the guest's kernel charged victim (50) for 150 ms of the previous stall"));
	assert_int_equal(i->aftershock_ns, 150000000);
	assert_int_equal(i->aftershock_of.ns, r->incidents[0].begin.ns);
	report_free(r);

	/* The debt is paid long before. */
	r = judge(no_aftershock, false);
	i = &r->incidents[r->n_incidents - 1];
	assert_int_equal(i->begin.ns, 851000000);
	assert_int_equal(i->verdict, VERDICT_GUEST_SPIN);
	assert_null(strstr(because_text(i).text, "pays"));
	assert_int_equal(i->aftershock_ns, 0);
	report_free(r);
}

/* For 3 s the guest gets every sixth of its ticks; then none for 150 ms. */
static void sick_ticks(struct tale *t)
{
	tale_begin(t);
	for (int64_t at = 204000; at < 3200000; at += 6 * TICK_US)
		ADD(t, IRQ(at, 0, VECTOR_ENTRY, 50, VS_VECTOR_LOCAL_TIMER));
	for (int64_t at = 204005; at < 3200000; at += 6 * TICK_US)
		ADD(t, IRQ(at, 0, VECTOR_EXIT, 50, VS_VECTOR_LOCAL_TIMER));
	ADD(t, SWITCH(VM, 3210000, 0, 50, 42, 1));
	ADD(t, IRQ(3220000, 0, VECTOR_ENTRY, 42, VS_VECTOR_LOCAL_TIMER));
	ADD(t, IRQ(3220005, 0, VECTOR_EXIT, 42, VS_VECTOR_LOCAL_TIMER));
	ADD(t, SWITCH(VM, 3370000, 0, 42, 50, 1));
}

static void what_is_normal_is_not_learnt_from_the_sick_state(void **state)
{
	struct report *r = judge(sick_ticks, false);
	const struct incident *i = &r->incidents[r->n_incidents - 1];

	(void)state;
	assert_true(r->n_incidents >= 1);
	assert_int_equal(i->begin.ns, 3210000000);
	assert_int_equal(i->detectors[DETECTOR_TICKS].sight, SIGHT_YES);
	assert_non_null(strstr(finding_text(&i->detectors[DETECTOR_TICKS].why, 1).text,
			       "normally one every 4."));
	report_free(r);
}

/* Without the guest's side: away so long every so often, for 3 s. */
static void away_again_and_again(struct tale *t, int64_t away_us, int64_t every_us)
{
	t->n = t->n_vmm = 0;
	ADD(t, SWITCH(HOST, 0, 0, 0, TID0, 0));
	for (int64_t at = 100000; at < 3100000; at += every_us)
		tale_away(t, at, at + away_us, VS_TASK_RUNNING, 500);
	ADD(t, SWITCH(HOST, 3500000, 0, TID0, 0, 1));
}

static void a_tenth_of_a_cpu(struct tale *t)
{
	away_again_and_again(t, 90000, 100000);
}

static void fair_shares(struct tale *t)
{
	away_again_and_again(t, 3000, 10000);
}

static void short_waits_without_the_guest_add_up(void **state)
{
	struct report *r = judge(a_tenth_of_a_cpu, false);
	int64_t denied = 0;

	(void)state;
	assert_balances(r);
	assert_in_range(r->n_incidents, 3, 4); /* windows of at most 1 s */
	for (size_t i = 0; i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];

		assert_int_equal(x->verdict, VERDICT_VCPU_NOT_SCHEDULED);
		assert_int_equal(x->confidence, CONFIDENCE_DECIDED);
		assert_int_equal(x->kind, GUEST_CPU_UNKNOWN);
		assert_true(x->end.ns - x->begin.ns <= 1000000000);
		assert_true(!i || x->begin.ns >= x[-1].end.ns);
		denied += x->breakdown_ns[VCPU_RUNNABLE];
	}
	assert_int_equal(denied, 30 * 90000000ll);
	report_free(r);
	r = judge(fair_shares, false);
	assert_int_equal(r->n_incidents, 0);
	report_free(r);
}

/* Swap at 5 ms a page, too short for stacks; KVM shows the exits. */
static void swaps(struct tale *t)
{
	t->n = t->n_vmm = 0;
	ADD(t, SWITCH(HOST, 0, 0, 0, TID0, 0));
	for (int64_t at = 100000; at < 1000000; at += 6000) {
		ADD(t, KVM(at - 10, 0, EXIT, TID0, 48 | 1ull << 32));
		tale_away(t, at, at + 5000, VS_TASK_UNINTERRUPTIBLE, 0);
		ADD(t, KVM(at + 5010, 0, ENTRY, TID0, 0));
	}
	ADD(t, SWITCH(HOST, 1500000, 0, TID0, 0, 1));
}

static void sleeps_in_page_faults_need_no_stack(void **state)
{
	struct report *r = judge(swaps, false);

	(void)state;
	assert_balances(r);
	assert_int_equal(r->n_incidents, 1);
	assert_int_equal(r->incidents[0].verdict, VERDICT_DEMAND_PAGING);
	assert_int_equal(r->incidents[0].confidence, CONFIDENCE_LIKELY);
	assert_int_equal(r->incidents[0].breakdown_ns[VCPU_BLOCKED], 150 * 5000000ll);
	report_free(r);
}

/* Twenty of a kind take turns, 10 ms each, then the other vCPU of this VM has the pCPU for 100 ms.
 */
static void crowd(struct tale *t)
{
	int64_t at = 300000;

	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	for (int i = 0; i < 20; i++, at += 10000) {
		char comm[9];

		snprintf(comm, sizeof(comm), "job-%d", i);
		ADD(t, NAME(HOST, 2, 600 + i, 600 + i, script_comm(comm)));
		tale_away(t, at, at + 9990, VS_TASK_RUNNING, 600 + i);
	}
	ADD(t, NAME(HOST, 2, 888, 880, script_comm("CPU 0/KV")));
	ADD(t, NAME(HOST, 2, 880, 880, script_comm("qemu-web")));
	tale_away(t, at, at + 100000, VS_TASK_RUNNING, 888);
	ADD(t, SWITCH(VM, at + 110000, 0, 50, 42, 1));
}

static void a_crowd_is_summed_by_name_and_a_process_named(void **state)
{
	struct report *r = judge(crowd, false);
	const struct report_culprit *c = r->incidents[0].culprits;

	(void)state;
	assert_int_equal(r->n_incidents, 1);
	assert_int_equal(r->incidents[0].verdict, VERDICT_VCPU_NOT_SCHEDULED);
	assert_int_equal(r->incidents[0].n_culprits, 2);
	assert_int_equal(c[0].share_ns, 20 * 9990000ll);
	assert_string_equal(culprit_what_text(&c[0]).text, "20 tasks of such names");
	assert_int_equal(c[0].n_tasks, 20);
	assert_int_equal(c[1].pid, 888);
	assert_string_equal(culprit_what_text(&c[1]).text, "of process 880 (qemu-web)");
	assert_int_equal(c[1].share_ns, 100000000);
	assert_int_equal(r->incidents[0].n_groups, 0); /* nobody knows their cgroups */
	report_free(r);
}

/* One wait: twenty of a kind take turns, five times 5 ms each, then a VM's vCPU has the pCPU for
 * 60 ms and a task of another cgroup for 40 ms. */
static void crowd_in_one_wait(struct tale *t)
{
	int64_t at = 250000;
	int32_t runs = TID0;

	tale_begin(t);
	tale_ticks(t, 204000, 250000, 50);
	for (int i = 0; i < 102; i++) {
		int32_t next = i == 100 ? 888 : i == 101 ? 700 : 600 + i % 20;

		ADD(t, SWITCH(HOST, at, 0, runs, next, VS_TASK_RUNNING));
		at += i == 100 ? 60000 : i == 101 ? 40000 : 5000;
		runs = next;
	}
	for (int i = 0; i < 20; i++) {
		char comm[9];

		snprintf(comm, sizeof(comm), "job-%d", i);
		ADD(t, NAME(HOST, 2, 600 + i, 600 + i, script_comm(comm)));
	}
	ADD(t, NAME(HOST, 2, 888, 880, script_comm("CPU 0/KV")));
	ADD(t, NAME(HOST, 2, 700, 700, script_comm("cron")));
	ADD(t, SWITCH(HOST, at, 0, runs, TID0, VS_TASK_RUNNING));
	ADD(t, SWITCH(VM, at + 10000, 0, 50, 42, 1));
}

static void origin(struct model *m, int32_t tid, int32_t tgid, const char *cgroup, const char *vm,
		   bool claimed)
{
	struct task_origin o = {.tid = tid,
				.tgid = tgid,
				.seen = {300000000},
				.began = {0},
				.vcpu_known = *vm != 0,
				.claimed = claimed,
				.uid = claimed ? 1000 : 0};

	snprintf(o.vm, sizeof(o.vm), "%s", vm);
	assert_int_equal(model_cgroup(m, cgroup, 0, 0, &o.cgroup), 0);
	assert_int_equal(model_task_origin_set(m, &o), 0);
}

static bool claims;

static void origins(struct model *m)
{
	for (int32_t i = 0; i < 20; i++)
		origin(m, 600 + i, 600 + i, "/batch.slice", "", false);
	origin(m, 888, 880, "/machine.slice/web2.scope", "web2", claims);
	origin(m, 700, 700, "/system.slice/cron.service", "", false);
}

static void crowd_with_origins(struct tale *t)
{
	crowd_in_one_wait(t);
	t->prepare = origins;
}

static void a_crowd_is_summed_by_cgroup_and_a_vm_named(void **state)
{
	struct report *r = judge(crowd_with_origins, false);
	const struct incident *i = r->incidents;
	const struct report_culprit *c = i->culprits;

	(void)state;
	assert_int_equal(r->n_incidents, 1);
	assert_string_equal(because_text(i).text,
			    "the vCPU was ready to run but waited 600 ms for a pCPU, held by 20 "
			    "tasks such as job-0 (600) in turn: 500 ms");
	assert_int_equal(i->n_culprits, 3);
	assert_int_equal(c[0].share_ns, 500000000);
	assert_int_equal(c[0].n_tasks, 20);
	assert_string_equal(c[0].cgroup, "/batch.slice");
	assert_string_equal(culprit_what_text(&c[1]).text, "VM web2, vCPU 0");
	assert_string_equal(c[1].vm.name, "web2");
	assert_int_equal(c[1].share_ns, 60000000);
	assert_false(c[1].vm.claimed);
	assert_string_equal(c[2].comm, "cron");
	assert_int_equal(i->n_groups, 3);
	assert_string_equal(i->groups[0].cgroup, "/batch.slice");
	assert_int_equal(i->groups[0].n_tasks, 20);
	assert_int_equal(i->groups[0].share_ns, 500000000);
	assert_string_equal(i->groups[2].cgroup, "/system.slice/cron.service");
	report_free(r);
}

/* Of other names, but of one cgroup. */
static void crowd_of_many_names(struct tale *t)
{
	crowd_with_origins(t);
	for (int i = 0; i < 20; i++) {
		const char comm[] = {(char)('a' + i), 0};

		ADD(t, NAME(HOST, 3, 600 + i, 600 + i, script_comm(comm)));
	}
}

static void vm_holds_the_pcpu(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 250000, 50);
	ADD(t, NAME(HOST, 2, 888, 880, script_comm("CPU 0/KV")));
	tale_away(t, 250000, 750000, VS_TASK_RUNNING, 888);
	ADD(t, SWITCH(VM, 760000, 0, 50, 42, 1));
	t->prepare = origins;
}

/* A thread id is used again: what was known of it is another task's. */
static void thread_id_used_again(struct tale *t)
{
	vm_holds_the_pcpu(t);
	ADD(t, NAME(HOST, 400000, 888, 888, script_comm("hog")));
}

static void who_held_the_pcpu_is_said_in_words(void **state)
{
	struct report *r = judge(crowd_of_many_names, false);

	(void)state;
	assert_string_equal(because_text(&r->incidents[0]).text,
			    "the vCPU was ready to run but waited 600 ms for a pCPU, held by 20 "
			    "tasks in cgroup /batch.slice in turn: 500 ms");
	report_free(r);
	r = judge(vm_holds_the_pcpu, false);
	assert_string_equal(because_text(&r->incidents[0]).text,
			    "the vCPU was ready to run but waited 500 ms for a pCPU, held by VM "
			    "web2, vCPU 0: CPU 0/KV (888)");
	report_free(r);
	claims = true;
	r = judge(vm_holds_the_pcpu, false);
	claims = false;
	assert_string_equal(
		because_text(&r->incidents[0]).text,
		"the vCPU was ready to run but waited 500 ms for a pCPU, held by VM "
		"web2, vCPU 0 (unverified name, a process of user 1000): CPU 0/KV (888)");
	assert_true(r->incidents[0].culprits[0].vm.claimed);
	assert_int_equal(r->incidents[0].culprits[0].vm.uid, 1000);
	report_free(r);
	r = judge(thread_id_used_again, false);
	assert_string_equal(because_text(&r->incidents[0]).text,
			    "the vCPU was ready to run but waited 500 ms for a pCPU, held by hog "
			    "(888)");
	assert_int_equal(r->incidents[0].n_groups, 0);
	report_free(r);
}

static void quota_of_a_cgroup(struct tale *t)
{
	t->cgroup = "/machine.slice/web.scope";
	t->quota_us = 25000;
	quota_counted(t);
}

static void quota_taken_away(struct tale *t)
{
	t->cgroup = "/kubepods.slice/kubepods-burstable.slice/"
		    "kubepods-burstable-pod5c8e5c2e_0a5b_4d0a_9d2f_3a1f5c2f7e11.slice/"
		    "cri-containerd-3f1c.scope";
	t->quota_us = 0;
	quota_counted(t);
}

static void a_quota_is_named_with_its_cgroup_and_values(void **state)
{
	struct report *r = judge(quota_of_a_cgroup, false);
	const struct incident *i = r->incidents;

	(void)state;
	assert_int_equal(r->n_incidents, 1);
	assert_string_equal(because_text(i).text,
			    "the VM's cgroup /machine.slice/web.scope was out of CPU quota for "
			    "500 ms: it gets 25.0 ms of CPU time in every 100 ms");
	assert_string_equal(i->quota.cgroup, "/machine.slice/web.scope");
	assert_int_equal(i->quota.quota_us, 25000);
	assert_int_equal(i->quota.period_us, 100000);
	report_free(r);
	r = judge(quota_taken_away, false);
	i = r->incidents;
	assert_int_equal(r->n_incidents, 1);
	assert_string_equal(
		because_text(i).text,
		"the VM's cgroup ...ble.slice/kubepods-burstable-pod5c8e5c2e_0a5b_4d0a_9d2f_"
		"3a1f5c2f7e11.slice/cri-containerd-3f1c.scope was out of CPU quota "
		"for 500 ms");
	assert_int_equal(i->quota.quota_us, 0);
	report_free(r);
	r = judge(quota_counted, false); /* a recording that names no cgroup */
	assert_string_equal(because_text(&r->incidents[0]).text,
			    "the VM's cgroup was out of CPU quota for 500 ms");
	assert_string_equal(r->incidents[0].quota.cgroup, "");
	report_free(r);
}

/* Told in test_verdict_waits.c and test_verdict_interrupts.c. */
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

/* ---- no stalls ---- */

static void computes(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 2200000, 50);
	ADD(t, WAKEUP(VM, 2199000, 0, 60, 50, 0));
	ADD(t, SWITCH(VM, 2200000, 0, 50, 60, 0));
}

static void computes_under_steal(struct tale *t)
{
	computes(t);
	for (int64_t at = 205000; at < 2190000; at += 100000)
		tale_away(t, at, at + 7000, VS_TASK_RUNNING, 500);
}

static void computes_under_exits(struct tale *t)
{
	computes(t);
	for (int64_t at = 205000; at < 2190000; at += 1000) {
		ADD(t, KVM(at, 0, EXIT, TID0, 1 | 1ull << 32));
		ADD(t, KVM(at + 40, 0, ENTRY, TID0, 0));
	}
}

static void idles(struct tale *t)
{
	tale_begin(t);
	ADD(t, SWITCH(VM, 201000, 0, 50, 0, 1));
	tale_away(t, 202000, 2200000, VS_TASK_INTERRUPTIBLE, 0);
	ADD(t, SWITCH(VM, 2200100, 0, 0, 42, 0));
}

static void idles_without_agent(struct tale *t)
{
	t->n = t->n_vmm = 0;
	ADD(t, SWITCH(HOST, 0, 0, 0, TID0, 0));
	tale_away(t, 202000, 2200000, VS_TASK_INTERRUPTIBLE, 0);
	ADD(t, SWITCH(HOST, 2300000, 0, TID0, 0, 1));
}

static void computes_without_agent(struct tale *t)
{
	t->n = t->n_vmm = 0;
	ADD(t, SWITCH(HOST, 0, 0, 0, TID0, 0));
	ADD(t, SWITCH(HOST, 2300000, 0, TID0, 0, 1));
}

static void computes_without_host(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 2200000, 50);
	ADD(t, SWITCH(VM, 2200000, 0, 50, 60, 0));
	for (size_t i = 0; i < t->n; i++) {
		if (t->events[i].source == HOST)
			t->events[i--] = t->events[--t->n];
	}
}

static void switches_all_the_time(struct tale *t)
{
	tale_begin(t);
	for (int64_t at = 210000; at < 2000000; at += 20000) {
		ADD(t, SWITCH(VM, at, 0, 50, 42, 0));
		ADD(t, SWITCH(VM, at + 10000, 0, 42, 50, 0));
	}
	tale_away(t, 500000, 580000, VS_TASK_RUNNING, 500); /* shorter than asked for */
}

static void loses_guest_events(struct tale *t)
{
	/* 500 ms without an event, because they were lost: no stretch is proven. */
	tale_begin(t);
	tale_ticks(t, 204000, 250000, 50);
	ADD(t, WAKEUP(VM, 240000, 0, 60, 50, 0));
	ADD(t, LOST(VM, 750000, 0));
	ADD(t, SWITCH(VM, 750000, 0, 50, 60, 0));
	ADD(t, SWITCH(VM, 760000, 0, 60, 42, 1));
}

static const struct {
	const char *name;
	void (*emit)(struct tale *t);
	size_t healthy; /* stretches listed by --all */
} decoys[] = {
	{"computes for 2 s, nothing waits", computes, 2},
	{"computes for 2 s, the host takes 7 % in short pieces", computes_under_steal, 2},
	{"computes for 2 s with many exits", computes_under_exits, 2},
	{"idles for 2 s", idles, 1},
	{"idles for 2 s, no agent", idles_without_agent, 0},
	{"computes for 2 s, no agent", computes_without_agent, 0},
	{"computes for 2 s, no host capture", computes_without_host, 2},
	{"switches, and a preemption below the threshold", switches_all_the_time, 1},
	{"loses its events for 500 ms", loses_guest_events, 1},
};

/* A task on a CPU that never ticked while it was watched denies another for 610 ms. */
static struct report *spin_report(bool handlers_counted)
{
	struct report_options options = {.than_ns = 100000000};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct report *r;

	script_vm(m, 2, "tcg");
	if (handlers_counted)
		assert_int_equal(model_handlers_counted(m, VM), 0);
	tale_begin(&tale);
	ADD(&tale, SWITCH(HOST, 0, 1, 0, TID1, 0));
	ADD(&tale, SWITCH(VM, 1, 1, 7, 0, 1));
	ADD(&tale, SWITCH(VM, 200000, 1, 0, 60, 0));
	tale_ticks(&tale, 204000, 800000, 50);
	ADD(&tale, SWITCH(VM, 800000, 1, 60, 0, 1));
	ADD(&tale, SWITCH(VM, 810000, 0, 50, 42, 1));
	tale_play(&tale, m);
	model_finish(m);
	r = report_builder_finish(b);
	report_builder_free(b);
	model_free(m);
	assert_int_equal(r->n_incidents, 1);
	return r;
}

/* It is judged by the rate of its neighbour. */
static void missing_ticks_are_seen_on_a_cpu_that_had_none(void **state)
{
	struct report *r = spin_report(false);

	(void)state;
	assert_int_equal(r->incidents[0].guest_cpu, 1);
	assert_int_equal(r->incidents[0].verdict, VERDICT_GUEST_SPIN);
	assert_false(r->incidents[0].missing & 1u << MISSING_HANDLERS);
	report_free(r);
}

/* Handlers that were only counted may have been a storm. */
static void short_handlers_untold_leave_a_doubt_and_are_named(void **state)
{
	struct report *r = spin_report(true);

	(void)state;
	assert_int_equal(r->incidents[0].verdict, VERDICT_GUEST_SPIN);
	assert_int_equal(r->incidents[0].confidence, CONFIDENCE_LIKELY);
	assert_true(r->incidents[0].missing & 1u << MISSING_HANDLERS);
	report_free(r);
}

static void what_is_no_stall_raises_no_incident(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(decoys); k++) {
		struct report *r = judge(decoys[k].emit, false);

		print_message("  %s\n", decoys[k].name);
		if (r->n_incidents)
			fail_msg("%s: %s", decoys[k].name, because_text(&r->incidents[0]).text);
		report_free(r);
		r = judge(decoys[k].emit, true);
		assert_int_equal(r->n_incidents, decoys[k].healthy);
		for (size_t i = 0; i < r->n_incidents; i++) {
			assert_true(r->incidents[i].healthy);
		}
		report_free(r);
	}
}

static void an_open_stall_is_seen_before_it_ends(void **state)
{
	static const struct timeline_event stop[] = {SIGNAL(299900, QEMU, 900, 19),
						     SWITCH(HOST, 300000, 0, TID0, 0, 0x104)};
	struct report_options options = {.than_ns = 100000000};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct incident ongoing[4];

	(void)state;
	script_vm(m, 1, "tcg");
	tale_begin(&tale);
	tale_play(&tale, m);
	assert_int_equal(report_builder_ongoing(b, ongoing, 4), 0);
	script_run(m, stop, COUNT(stop));
	model_advance(m, (struct host_ns){390000000});
	assert_int_equal(report_builder_ongoing(b, ongoing, 4), 0);
	model_advance(m, (struct host_ns){410000000});
	assert_int_equal(report_builder_ongoing(b, ongoing, 4), 1);
	assert_int_equal(ongoing[0].verdict, VERDICT_VM_PAUSED);
	assert_true(ongoing[0].ongoing);
	assert_int_equal(ongoing[0].end.ns - ongoing[0].begin.ns, 110000000);
	assert_incident_balances(&ongoing[0]);
	report_builder_free(b);
	model_free(m);
}

struct live {
	size_t reported;
	struct host_ns at;
	enum verdict verdict;
	size_t n_stacks;
	struct model *m;
};

static void live_incident(void *context, const struct report *r)
{
	struct live *live = context;

	live->reported++;
	live->at = model_now(live->m);
	live->verdict = r->incidents[0].verdict;
	live->n_stacks = r->n_stacks;
}

static void live_incidents_come_within_a_second(void **state)
{
	struct live live = {0};
	struct report_options options = {
		.than_ns = 100000000, .incident = live_incident, .context = &live};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);

	(void)state;
	live.m = m;
	script_vm(m, 1, "tcg");
	stacks(m);
	big_lock(&tale);
	tale_play(&tale, m);
	for (int64_t ms = 620; ms < 2000 && !live.reported; ms += 20)
		model_advance(m, (struct host_ns){ms * 1000000});
	assert_int_equal(live.reported, 1);
	assert_true(live.at.ns < 1610000000);
	assert_int_equal(live.verdict, VERDICT_VMM_LOCK);
	assert_int_equal(live.n_stacks, 1);
	report_builder_free(b);
	model_free(m);
}

static void a_stop_that_outlasts_the_recording_is_ongoing(void **state)
{
	struct report_options options = {.than_ns = 100000000};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct report *r;

	(void)state;
	script_vm(m, 1, "tcg");
	tale_begin(&tale);
	ADD(&tale, SIGNAL(299900, QEMU, 900, 19));
	ADD(&tale, SWITCH(HOST, 300000, 0, TID0, 0, 0x104));
	ADD(&tale, SWITCH(HOST, 900000, 1, 5, 6, 0));
	tale_play(&tale, m);
	model_finish(m);
	r = report_builder_finish(b);
	assert_int_equal(r->n_incidents, 1);
	assert_true(r->incidents[0].ongoing);
	assert_int_equal(r->incidents[0].verdict, VERDICT_VM_PAUSED);
	assert_balances(r);
	report_free(r);
	report_builder_free(b);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cause_gets_its_verdict),
		cmocka_unit_test(a_pause_before_a_long_interrupt_is_told),
		cmocka_unit_test(three_causes_are_named_with_their_shares),
		cmocka_unit_test(what_was_seen_around_a_gap_makes_likely),
		cmocka_unit_test(a_spin_is_not_decided_by_what_was_not_seen),
		cmocka_unit_test(who_pays_for_a_pause_blames_nobody_for_sure),
		cmocka_unit_test(what_is_normal_is_not_learnt_from_the_sick_state),
		cmocka_unit_test(short_waits_without_the_guest_add_up),
		cmocka_unit_test(sleeps_in_page_faults_need_no_stack),
		cmocka_unit_test(a_crowd_is_summed_by_name_and_a_process_named),
		cmocka_unit_test(a_crowd_is_summed_by_cgroup_and_a_vm_named),
		cmocka_unit_test(who_held_the_pcpu_is_said_in_words),
		cmocka_unit_test(a_quota_is_named_with_its_cgroup_and_values),
		cmocka_unit_test(every_rule_has_a_story),
		cmocka_unit_test(missing_ticks_are_seen_on_a_cpu_that_had_none),
		cmocka_unit_test(short_handlers_untold_leave_a_doubt_and_are_named),
		cmocka_unit_test(what_is_no_stall_raises_no_incident),
		cmocka_unit_test(an_open_stall_is_seen_before_it_ends),
		cmocka_unit_test(live_incidents_come_within_a_second),
		cmocka_unit_test(a_stop_that_outlasts_the_recording_is_ongoing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
