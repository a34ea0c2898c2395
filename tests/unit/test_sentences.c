/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks the sentences of a report: given facts lead to findings, and these to the exact sentence.
 * The last test fails for a kind of finding that no row here produces: add the facts that lead to
 * it, and its sentence. test_sentences_seen.c has the evidence, test_sentences_who.c the culprits.
 */
#include "host-collector/analyze/stall/detectors.h"
#include "host-collector/analyze/stall/state_times.h"
#include "host-collector/analyze/stall/verdict.h"
#include "host-collector/view/verdict_words.h"
#include "tests/unit/sentences.h"

/* ---- why ---- */

static const struct {
	enum verdict verdict;
	const char *says;
	struct stall_facts f;
} causes[] = {
	{VERDICT_VM_PAUSED,
	 "the vCPU thread was stopped for 400 ms by a signal from bash (900)",
	 {TASK, SPAN(STOPPED, .signal_pid = BASH, .signal_number = 19)}},
	{VERDICT_VM_PAUSED,
	 "the vCPU thread was frozen with its cgroup for 400 ms",
	 {TASK, SPAN(STOPPED, .wait_class = WAIT_FREEZER)}},
	{VERDICT_VM_PAUSED,
	 "the vCPU thread was stopped for 400 ms; the recording does not show who stopped it",
	 {TASK, SPAN(STOPPED, .task_state = VS_TASK_STOPPED)}},
	{VERDICT_VM_PAUSED,
	 "the vCPU thread was stopped for 400 ms by its tracer bash (900)",
	 {TASK, SPAN(STOPPED, .task_state = VS_TASK_TRACED, .waker_pid = BASH)}},
	{VERDICT_VM_PAUSED, "the VM was paused by its VMM for 400 ms", {TASK, SPAN(STOPPED)}},
	{VERDICT_MIGRATION, "QEMU paused the VM for 400 ms to complete its migration", {TASK}},
	{VERDICT_HOST_LOCKUP,
	 "the host's watchdog reports that the vCPU's pCPU was stuck in the host's kernel: 400 ms of "
	 "the stall",
	 {TASK}},
	{VERDICT_SPLIT_LOCK,
	 "the guest locked memory across cache lines, and the host's kernel held its vCPU back for "
	 "400 ms",
	 {TASK}},
	{VERDICT_VCPU_NOT_SCHEDULED,
	 "the vCPU was ready to run but waited 400 ms for a pCPU, held by hog (500)",
	 {TASK, .n_holders = 1, .holders = {{HOG, 390 * MS}}}},
	{VERDICT_VCPU_NOT_SCHEDULED,
	 "the vCPU was ready to run but waited 400 ms for a pCPU",
	 {TASK}},
	{VERDICT_VCPU_NOT_SCHEDULED,
	 "the vCPU was ready to run but waited 400 ms for a pCPU, held by VM web2, vCPU 0: CPU 0/KVM "
	 "(888)",
	 {TASK, .n_holders = 1, .holders = {{888, 390 * MS}}}},
	{VERDICT_VCPU_NOT_SCHEDULED,
	 "the vCPU was ready to run but waited 400 ms for a pCPU, held by VM web3, vCPU 0 "
	 "(unverified name, a process of user 1000): CPU 0/KVM (889)",
	 {TASK, .n_holders = 1, .holders = {{889, 390 * MS}}}},
	{VERDICT_VCPU_NOT_SCHEDULED,
	 "the vCPU was ready to run but waited 400 ms for a pCPU, held by 2 tasks such as job-2 "
	 "(602) in turn: 300 ms",
	 {TASK, .n_holders = 2, .holders = {{601, 140 * MS}, {602, 160 * MS}}}},
	{VERDICT_VCPU_NOT_SCHEDULED,
	 "the vCPU was ready to run but waited 400 ms for a pCPU, held by 2 tasks in cgroup "
	 "/batch.slice in turn: 300 ms",
	 {TASK, .n_holders = 2, .holders = {{603, 140 * MS}, {604, 160 * MS}}}},
	{VERDICT_VCPU_NOT_SCHEDULED,
	 "the vCPU was ready to run but waited 400 ms for a pCPU, held by several tasks in turn, "
	 "longest by hog (500): 150 ms",
	 {TASK, .n_holders = 2, .holders = {{HOG, 150 * MS}, {603, 140 * MS}}}},
	{VERDICT_VCPU_NOT_SCHEDULED,
	 "the vCPU was ready to run but waited 400 ms for a pCPU, held by hog (500); or its cgroup is "
	 "out of CPU quota, which the kernel counts only when the wait ends",
	 {TASK, .ongoing = true, .data = {.quota = true}, .n_holders = 1,
	  .holders = {{HOG, 390 * MS}}}},
	{VERDICT_CGROUP_THROTTLED,
	 "the VM's cgroup was out of CPU quota for 400 ms",
	 {TASK, .quota_ns = 400 * MS}},
	{VERDICT_CGROUP_THROTTLED,
	 "the VM's cgroup /vm.scope was out of CPU quota for 400 ms: it gets 20.0 ms of CPU time in "
	 "every 100 ms",
	 {TASK, .quota_ns = 400 * MS, SPAN(THROTTLED, .throttled_ns = 400 * MS, .quota = 1)}},
	{VERDICT_CGROUP_THROTTLED,
	 "the VM's cgroup /vm.scope was out of CPU quota for 400 ms",
	 {TASK, .quota_ns = 400 * MS, SPAN(THROTTLED, .throttled_ns = 400 * MS, .quota = 2)}},
	{VERDICT_CGROUP_THROTTLED,
	 "the vCPU was ready to run for 400 ms but did not run although its pCPU was idle, as happens under a CPU "
	 "quota",
	 {TASK, .pcpu_idle_ns = 400 * MS}},
	{VERDICT_VMM_LOCK, "the vCPU thread waited 400 ms for QEMU's big lock", {TASK}},
	{VERDICT_VMM_LOCK,
	 "the vCPU thread waited 400 ms for QEMU's big lock, released by waker (77)",
	 {TASK, SPAN(BLOCKED, .wait_class = WAIT_VMM_LOCK, .waker_pid = WAKER)}},
	{VERDICT_STORAGE_BACKEND,
	 "the vCPU thread waited 400 ms for a block device in the host",
	 {TASK}},
	{VERDICT_DEMAND_PAGING,
	 "the vCPU thread waited 400 ms for a page that userspace provides",
	 {TASK, .class_ns = {[WAIT_USERFAULT] = 400 * MS}}},
	{VERDICT_DEMAND_PAGING,
	 "the vCPU thread waited 400 ms for a page to be read from disk or swap",
	 {TASK, .class_ns = {[WAIT_PAGE_FAULT] = 400 * MS}}},
	{VERDICT_MMU_CONTENTION,
	 "the vCPU thread waited 400 ms for a lock of the VM's memory map",
	 {TASK}},
	{VERDICT_HOST_MEMORY, "the vCPU thread had to free host memory for 400 ms", {TASK}},
	{VERDICT_GUEST_IRQ_STORM,
	 "2000 interrupts in the guest took 400 ms of 500 ms",
	 {TASK, .n_irqs = 2000}},
	{VERDICT_GUEST_SPIN,
	 "spinner (50) kept the guest's CPU for 400 ms while its vCPU ran",
	 {TASK}},
	{VERDICT_GUEST_SPIN,
	 "spinner (50) kept the guest's CPU for 400 ms while its vCPU halted, as a paravirtual lock "
	 "does; it most likely waited for other (61), which kept CPU 1 meanwhile",
	 {TASK, .guest_peer = {.known = true,
			       .cpu = 1,
			       .kind = GUEST_CPU_TASK,
			       .pid = OTHER,
			       .halted_ns = 390 * MS}}},
	{VERDICT_GUEST_SPIN,
	 "spinner (50) kept the guest's CPU for 400 ms while its vCPU ran; it may have waited for "
	 "other (61), which kept CPU 1, interrupts off, meanwhile",
	 {TASK, .guest_peer = {.known = true,
			       .unsure = true,
			       .ticks_stopped = true,
			       .cpu = 1,
			       .kind = GUEST_CPU_TASK,
			       .pid = OTHER}}},
	{VERDICT_GUEST_SPIN,
	 "spinner (50) kept the guest's CPU for 400 ms while its vCPU ran; it waited for another "
	 "CPU's answer in smp_call; it had sent a request to CPU 1, which was in softirq NET_RX meanwhile",
	 {TASK, .sampled = {.n = 9, .calls = 9, .spinning = true, .function = "smp_call"},
	  .guest_peer = {.known = true,
			 .called = true,
			 .cpu = 1,
			 .kind = GUEST_CPU_SOFTIRQ,
			 .number = 3}}},
	{VERDICT_GUEST_SPIN,
	 "spinner (50) kept the guest's CPU for 400 ms while its vCPU ran; it spun in "
	 "queued_spin_lock_slowpath; it most likely waited for CPU 1, which was in interrupt "
	 "local_timer meanwhile",
	 {TASK,
	  .sampled =
		  {.n = 9, .spins = 9, .spinning = true, .function = "queued_spin_lock_slowpath"},
	  .guest_peer = {.known = true,
			 .cpu = 1,
			 .kind = GUEST_CPU_HARDIRQ,
			 .vector = true,
			 .number = VS_VECTOR_LOCAL_TIMER}}},
	{VERDICT_GUEST_SPIN,
	 "spinner (50) kept the guest's CPU for 400 ms while its vCPU ran; the guest's kernel "
	 "charged waiter (60) for 150 ms of the previous stall",
	 {TASK, .debt = {.pid = WAITER, .ns = 150 * MS}}},
	{VERDICT_GUEST_SPIN,
	 "the guest stayed in interrupt local_timer for 400 ms while its vCPU ran",
	 {VECTOR(LOCAL_TIMER)}},
	{VERDICT_GUEST_SPIN,
	 "the guest stayed in softirq NET_RX for 400 ms while its vCPU ran",
	 {STALL, .kind = GUEST_CPU_SOFTIRQ, .number = 3}},
	{VERDICT_GUEST_SPIN,
	 "the idle guest CPU took no interrupt for 400 ms while its vCPU ran",
	 {STALL, .kind = GUEST_CPU_IDLE,
	  .late = {.ns = 400 * MS, .vector = 0xec, .source = "timer"}}},
	{VERDICT_GUEST_SPIN,
	 "spinner (50) kept the guest's CPU for 400 ms while its vCPU ran; it may have waited for CPU "
	 "1, whose vCPU did not run (runnable: hog (500) held its pCPU)",
	 {TASK, .waiter_pid = WAITER, .waiter_ns = 400 * MS,
	  .waits = {.spins_unseen = true,
		    .peer_kept_ns = 400 * MS,
		    .peer_kept = {.known = true,
				  .vcpu = 1,
				  .state = VCPU_RUNNABLE,
				  .pid = HOG,
				  .keeper = KEEPER_HELD_PCPU}}}},
	{VERDICT_LOCK_HOLDER_PREEMPTED,
	 "the guest spun for 400 ms, waiting for a lock held by vCPU 7, which did not run (runnable)",
	 {TASK, .waits = {.lock_owner = {.known = true, .vcpu = 7, .state = VCPU_RUNNABLE}}}},
	{VERDICT_LOCK_HOLDER_PREEMPTED,
	 "the guest halted with a task to run for 400 ms, waiting for a lock held by other (61) on CPU 1, "
	 "whose vCPU did not run (stopped: bash (900) stopped it)",
	 {TASK, .guest_peer = {.known = true, .cpu = 1, .kind = GUEST_CPU_TASK, .pid = OTHER},
	  .waits = {.lock_halted_ns = 390 * MS,
		    .lock_owner = {.known = true,
				   .vcpu = 1,
				   .state = VCPU_STOPPED,
				   .pid = BASH,
				   .keeper = KEEPER_STOPPED}}}},
	{VERDICT_LOCK_HOLDER_PREEMPTED,
	 "the guest waited 400 ms for CPU 1, whose vCPU did not run (runnable); the wait ended "
	 "when it ran again",
	 {TASK, .waits = {.coincidence = true,
			  .lock_owner = {.known = true, .vcpu = 1, .state = VCPU_RUNNABLE}}}},
	{VERDICT_IPI_TARGET_PREEMPTED,
	 "the guest waited 400 ms for the answer to an interrupt that it sent to CPU 1, whose vCPU "
	 "did not run (runnable)",
	 {TASK, .waits = {.call_target = {.known = true, .vcpu = 1, .state = VCPU_RUNNABLE}}}},
	{VERDICT_IPI_TARGET_PREEMPTED,
	 "the guest waited 400 ms for the answer to an interrupt that it may have sent to CPU 1, "
	 "whose vCPU did not run (runnable)",
	 {TASK, .waits = {.coincidence = true,
			  .call_target = {.known = true, .vcpu = 1, .state = VCPU_RUNNABLE}}}},
	{VERDICT_DEVICE_NO_COMPLETION,
	 "the guest waited 400 ms for QEMU to complete its access to a device",
	 {TASK, .device_ns = 400 * MS}},
	{VERDICT_DEVICE_NO_COMPLETION,
	 "the guest read a device 70000 times (port 0x1f7) in 400 ms, and its VMM did not complete "
	 "what it waited for",
	 {TASK, .waits = {.polled = 0x1f7, .polled_port = true, .polls = 70000}}},
	{VERDICT_DEVICE_NO_COMPLETION,
	 "the guest read a device 70000 times (address 0xfebc0000) in 400 ms, and its VMM did not "
	 "complete what it waited for",
	 {TASK, .waits = {.polled = 0xfebc0000, .polls = 70000}}},
	{VERDICT_CLOCK_JUMP,
	 "the guest's clock went ahead by 2000 ms: this is not a stall, but the guest may take it for one",
	 {TASK, .clock_step_ns = 2000 * MS}},
	{VERDICT_CLOCK_JUMP,
	 "the guest's clock went back by 2000 ms: this is not a stall, but the guest may take it for one",
	 {TASK, .clock_step_ns = -2000 * MS}},
	{VERDICT_NESTED_UNOBSERVABLE,
	 "spinner (50) ran a nested guest for 400 ms: a stall inside it cannot be seen from "
	 "this host",
	 {TASK}},
	{VERDICT_INTERRUPT_LOST,
	 "KVM accepted an interrupt for the vCPU (msi, vector 0x24, irq 25, raised by waker (77)), "
	 "and its handler did not run for 400 ms, although the vCPU halted",
	 {STALL, .state_ns = {[VCPU_HALTED] = 400 * MS},
	  .lost = {.source = "msi", .vector = 0x24, .irq = 25, .raiser = WAKER}}},
	{VERDICT_INTERRUPT_LOST,
	 "KVM accepted an interrupt for the vCPU (ipi, vector 0xfb, raised by task 4711), and its "
	 "handler did not run for 400 ms, although the guest went on",
	 {STALL, .lost = {.source = "ipi", .vector = 0xfb, .irq = -1, .raiser = 4711}}},
	{VERDICT_TIMER_LATE,
	 "the host delivered the guest's timer interrupt 400 ms late: none was pending before",
	 {TASK}},
};

static void every_cause_has_its_sentence(void **state)
{
	struct finding found[REPORT_BECAUSE_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(causes); i++) {
		verdict_because(causes[i].verdict, &causes[i].f, m, 400 * MS, found);
		says(found, REPORT_BECAUSE_MAX, causes[i].says);
	}
}

/* ---- denied ---- */

static const struct {
	const char *says;
	struct stall_facts f;
} denials[] = {
	{"nothing", {TASK}},
	{"interrupt 0x24: its handler did not run",
	 {STALL, .denied = true, .lost = {.alone = true, .vector = 0x24}}},
	{"nothing: the guest's clock was set", {TASK, .denied = true, .clock_step_ns = 2000 * MS}},
	{"waiter (60) was ready to run on this CPU for 400 ms and did not run",
	 {TASK, .denied = true, .waiter_pid = WAITER, .waiter_ns = 400 * MS, .n_waiters = 1}},
	{"waiter (60) was ready to run on this CPU for 400 ms and did not run; so was 1 other task",
	 {TASK, .denied = true, .waiter_pid = WAITER, .waiter_ns = 400 * MS, .n_waiters = 2}},
	{"waiter (60) was ready to run on this CPU for 400 ms and did not run; so were 3 other tasks",
	 {TASK, .denied = true, .waiter_pid = WAITER, .waiter_ns = 400 * MS, .n_waiters = 4}},
	{"spinner (50) was interrupted and did not run",
	 {VECTOR(LOCAL_TIMER), .pid = SPINNER, .denied = true}},
	{"this CPU did not run: the host kept its vCPU from the guest for 400 ms",
	 {TASK, .denied = true, .longest_chain_ns = 400 * MS,
	  .state_ns = {[VCPU_RUNNABLE] = 400 * MS}}},
	{"this CPU did not run: the host kept its vCPU from the guest for 400 ms in all",
	 {TASK, .denied = true, .longest_chain_ns = 90 * MS,
	  .state_ns = {[VCPU_RUNNABLE] = 400 * MS}}},
	{"this CPU did not run: the host kept its vCPU from the guest for 400 ms in all, in 90 short "
	 "waits",
	 {STALL, .denied = true, .n_pieces = 90, .state_ns = {[VCPU_BLOCKED] = 400 * MS}}},
	{"spinner (50) waited for another CPU of the guest, which did not run",
	 {TASK, .denied = true, .waits = {.lock_ns = 400 * MS}}},
	{"nothing else ran on this CPU", {VECTOR(LOCAL_TIMER), .denied = true}},
	{"spinner (50): interrupts took 450 ms of its time on the CPU",
	 {TASK, .denied = true, .irq_ns = 450 * MS}},
	{"timer ticks did not come for 400 ms; one every 4.0 ms is normal",
	 {TASK, .denied = true, .tick_gap_ns = 400 * MS, .tick_interval_ns = 4 * MS}},
};

static void what_was_denied_has_its_sentence(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(denials); i++) {
		struct finding found[REPORT_DENIED_MAX] = {0};

		describe_denied(&denials[i].f, m, found);
		says(found, REPORT_DENIED_MAX, denials[i].says);
	}
}

/* ---- who noticed ---- */

enum { BLIND = SIGHT_BLIND, NO = SIGHT_NO, YES = SIGHT_YES };

static const struct {
	enum verdict verdict;
	enum detector detector;
	int sight;
	const char *says;
	struct stall_facts f;
} detected[] = {
	{VERDICT_VM_PAUSED, DETECTOR_TICKS, BLIND, "no event of the guest was recorded", {TASK}},
	{VERDICT_INTERRUPT_LOST,
	 DETECTOR_TICKS,
	 BLIND,
	 "an interrupt that is not handled keeps no task waiting and stops no tick",
	 {STALL, DATA, .lost = {.alone = true}}},
	{VERDICT_VM_PAUSED,
	 DETECTOR_SCHEDULER,
	 BLIND,
	 "no event of the guest shows what this CPU did at that time",
	 {STALL, DATA, .kind = GUEST_CPU_UNKNOWN}},
	{VERDICT_VM_PAUSED,
	 DETECTOR_SCHEDULER,
	 BLIND,
	 "the guest's CPU idled",
	 {STALL, DATA, .kind = GUEST_CPU_IDLE}},
	{VERDICT_STORAGE_BACKEND,
	 DETECTOR_SCHEDULER,
	 BLIND,
	 "the vCPU had many short waits, each of them too short for this detector",
	 {STALL, DATA, .n_pieces = 90}},
	{VERDICT_GUEST_SPIN,
	 DETECTOR_SCHEDULER,
	 NO,
	 "no other task waited for this CPU",
	 {TASK, DATA}},
	{VERDICT_GUEST_SPIN,
	 DETECTOR_SCHEDULER,
	 NO,
	 "waiter (60) waited only 789 us for this CPU",
	 {TASK, DATA, .waiter_pid = WAITER, .waiter_ns = 789000}},
	{VERDICT_GUEST_SPIN,
	 DETECTOR_SCHEDULER,
	 YES,
	 "waiter (60) waited 400 ms for this CPU",
	 {TASK, DATA, .waiter_pid = WAITER, .waiter_ns = 400 * MS}},
	{VERDICT_GUEST_SPIN,
	 DETECTOR_TICKS,
	 BLIND,
	 "too few ticks were seen to know their rate",
	 {TASK, DATA}},
	{VERDICT_GUEST_SPIN,
	 DETECTOR_TICKS,
	 YES,
	 "none for 400 ms, normally one every 4.0 ms",
	 {TASK, DATA, .tick_interval_ns = 4 * MS, .tick_gap_ns = 400 * MS}},
	{VERDICT_GUEST_SPIN,
	 DETECTOR_TICKS,
	 NO,
	 "they went on, at most 8.0 ms apart; normally one every 4.0 ms",
	 {TASK, DATA, .tick_interval_ns = 4 * MS, .tick_gap_ns = 8 * MS}},
	{VERDICT_GUEST_SPIN,
	 DETECTOR_WATCHDOG,
	 NO,
	 "the stall is shorter than its threshold, 20.0 s by default",
	 {TASK, DATA}},
	{VERDICT_GUEST_SPIN,
	 DETECTOR_WATCHDOG,
	 NO,
	 "no such line in the recorded part of the guest's log; the watchdog may be off",
	 {.vm = VM, .kind = GUEST_CPU_TASK, .than_ns = 100 * MS, .end = {30000 * MS}, DATA}},
	{VERDICT_VM_PAUSED,
	 DETECTOR_WATCHDOG,
	 NO,
	 "no such line in the guest's log: its watchdog does not count time in which the VM was paused",
	 {.vm = VM, .kind = GUEST_CPU_TASK, .than_ns = 100 * MS, .end = {30000 * MS}, DATA}},
};

static void every_detector_has_its_sentence(void **state)
{
	static const struct stall_facts ten_seconds = {TASK, DATA};
	static struct incident out;

	(void)state;
	for (size_t i = 0; i < COUNT(detected); i++) {
		memset(&out, 0, sizeof(out));
		out.verdict = detected[i].verdict;
		detectors_fill(&detected[i].f, m, &out);
		assert_int_equal(out.detectors[detected[i].detector].sight, detected[i].sight);
		says(&out.detectors[detected[i].detector].why, 1, detected[i].says);
	}
	assert_int_equal(model_guest_watchdog(m, VM, 10), 0);
	detectors_fill(&ten_seconds, m, &out);
	says(&out.detectors[DETECTOR_WATCHDOG].why, 1,
	     "the stall is shorter than its threshold, 10.0 s");
	assert_int_equal(model_guest_watchdog(m, VM, 0), 0);
	detectors_watchdog(&(struct report_watchdog){.stuck_s = 22}, &out);
	says(&out.detectors[DETECTOR_WATCHDOG].why, 1,
	     "the guest's log says that its CPU was stuck for 22 s");
}

/* ---- the judge ---- */

static const struct {
	const char *says;
	struct stall_facts f;
} judged[] = {
	{"nothing that was seen explains the 500 ms that were denied",
	 {TASK, DATA, .denied = true, .longest_chain_ns = 500 * MS,
	  .state_ns = {[VCPU_BLOCKED] = 500 * MS}}},
	{"no cause explains half of the 500 ms that were denied; storage_backend explains 100 ms",
	 {TASK, DATA, .denied = true, .longest_chain_ns = 500 * MS,
	  .state_ns = {[VCPU_BLOCKED] = 500 * MS}, .class_ns = {[WAIT_BLOCK_IO] = 100 * MS}}},
	{"no single cause: storage_backend took 200 ms of the 500 ms that were denied, "
	 "mmu_contention 150 ms, host_memory 150 ms",
	 {TASK, DATA, .denied = true, .longest_chain_ns = 500 * MS,
	  .state_ns = {[VCPU_BLOCKED] = 500 * MS},
	  .class_ns = {[WAIT_BLOCK_IO] = 200 * MS,
		       [WAIT_MMU_LOCK] = 150 * MS,
		       [WAIT_RECLAIM] = 150 * MS}}},
	{"the guest's times are not proven: what the host did meanwhile is not known",
	 {TASK, DATA, .denied = true, .err_ns = UINT64_MAX}},
};

static void the_judge_says_what_it_cannot_tell(void **state)
{
	static struct incident out;

	(void)state;
	for (size_t i = 0; i < COUNT(judged); i++) {
		verdict_judge(&judged[i].f, m, &out);
		says(out.because, REPORT_BECAUSE_MAX, judged[i].says);
	}
	out = (struct incident){.end = {10}, .breakdown_ns = {[VCPU_GUEST] = 9}};
	incident_verify(&out);
	says(out.because, REPORT_BECAUSE_MAX,
	     "a bug of vcpuscope, please report it with the recording: its states sum "
	     "to 9 ns, 10 ns passed");
}

static void what_does_not_add_up_is_named(void **state)
{
	static struct incident stalls[] = {
		{.vcpu = 2, .end = {10}, .breakdown_ns = {[VCPU_GUEST] = 14, [VCPU_VMM] = -4}}};
	struct report_vcpu vcpus[] = {{.vcpu = 3, .end = {20}, .states_ns = {[VCPU_GUEST] = 20}}};
	struct report r = {.end = {10}, .n_incidents = 1, .incidents = stalls};
	struct finding wrong[STATE_TIMES_FINDINGS];

	(void)state;
	assert_int_equal(report_imbalances(&r, wrong), 1);
	says(wrong, STATE_TIMES_FINDINGS,
	     "stall 1 of the report, on vCPU 2 of VM : state vmm has -4 ns (all states sum to 10 ns, "
	     "10 ns passed)");
	r.n_vcpus = 1;
	r.vcpus = vcpus;
	assert_int_equal(report_imbalances(&r, wrong), 2);
	says(wrong, STATE_TIMES_FINDINGS, "vCPU 3 of VM : its time exceeds the recording's");
}

/* A word in braces that no value has would leave a gap in its sentence: a row above would fail. A
 * long name is cut, and the sentence ends. */
static void a_long_sentence_is_cut(void **state)
{
	struct finding long_names[3] = {{.kind = FINDING_SEEN_HOST_LOG},
					{.kind = FINDING_SEEN_HOST_LOG}};
	struct finding_text t;

	(void)state;
	for (size_t i = 0; i < 2; i++)
		memset(long_names[i].name, 'x', sizeof(long_names[i].name) - 1);
	t = finding_text(long_names, 3);
	assert_int_equal(strlen(t.text), REPORT_TEXT_MAX - 1);
	assert_string_equal(finding_text(&long_names[2], 1).text, "");
}

static void every_verdict_has_its_words(void **state)
{
	(void)state;
	for (int v = 0; v < VERDICT_COUNT; v++) {
		if (!*verdict_words((enum verdict)v).advice)
			fail_msg("%s has no advice", verdict_name((enum verdict)v));
	}
	for (size_t r = 0; r < verdict_rules_count; r++) {
		const struct verdict_words w = verdict_words(verdict_rules[r].verdict);

		if (!*w.holds || !*w.contradicts || !*w.reason != !!verdict_rules[r].because)
			fail_msg("%s lacks words", verdict_name(verdict_rules[r].verdict));
	}
}

/* ---- no sentence without a row ---- */

static void every_finding_was_said(void **state)
{
	size_t unsaid = 0;

	(void)state;
	no_finding_is_without_a_row(FINDING_NONE + 1, FINDING_SEEN_STOP_SIGNAL - 1);
	no_finding_is_without_a_row(FINDING_NO_WAITER, FINDING_COUNT - 1);
	for (size_t r = 0; r < verdict_rules_count; r++) {
		const struct verdict_rule *rule = &verdict_rules[r];

		if (!rule->because && !cause_said[rule->verdict]) {
			print_error("no row of this test has the cause %s\n",
				    verdict_name(rule->verdict));
			unsaid++;
		}
	}
	assert_int_equal(unsaid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cause_has_its_sentence),
		cmocka_unit_test(what_was_denied_has_its_sentence),
		cmocka_unit_test(every_detector_has_its_sentence),
		cmocka_unit_test(the_judge_says_what_it_cannot_tell),
		cmocka_unit_test(what_does_not_add_up_is_named),
		cmocka_unit_test(a_long_sentence_is_cut),
		cmocka_unit_test(every_verdict_has_its_words),
		cmocka_unit_test(every_finding_was_said),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
