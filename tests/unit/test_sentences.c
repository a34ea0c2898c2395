/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks every sentence of a report: given facts lead to findings, and these to the exact sentence.
 * The last test fails for a kind of finding that no row here produces: add the facts that lead to
 * it, and its sentence.
 */
#include "host-collector/analyze/stall/describe.h"
#include "host-collector/analyze/stall/detectors.h"
#include "host-collector/analyze/stall/state_times.h"
#include "host-collector/analyze/stall/verdict.h"
#include "host-collector/analyze/stall/verdict_parts.h"
#include "host-collector/view/culprit_text.h"
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_script.h"

#define MS 1000000ll

enum { HOG = 500, BASH = 900, WAKER = 77, SPINNER = 50, WAITER = 60, OTHER = 61 };

/* What most stalls have: task 50 had guest CPU 0 from 1000 to 1500 ms. */
#define STALL                                                                                      \
	.vm = VM, .vcpu_known = true, .than_ns = 100 * MS, .begin = {1000 * MS}, .end = {1500 * MS}
#define TASK         STALL, .kind = GUEST_CPU_TASK, .pid = SPINNER
#define VECTOR(NAME) STALL, .kind = GUEST_CPU_HARDIRQ, .vector = true, .number = VS_VECTOR_##NAME
#define SPAN(STATE, ...)                                                                           \
	.n_spans = 1, .spans = {{.vm = VM,                                                         \
				 .state = VCPU_##STATE,                                            \
				 .begin = {1050 * MS},                                             \
				 .end = {1450 * MS},                                               \
				 __VA_ARGS__}}
#define LOCK_OWNER(KEEPER)                                                                         \
	.waits = {.lock_owner = {.known = true, .pid = BASH, .keeper = KEEPER_##KEEPER}}
#define DATA .data = {.host_events = true, .guest_events = true, .kvm_events = true}

/* ---- what was said, for the last test ---- */

static bool said[FINDING_COUNT], cause_said[VERDICT_COUNT];

static void says(const struct finding *findings, size_t n, const char *expected)
{
	assert_string_equal(finding_text(findings, n).text, expected);
	for (size_t i = 0; i < n && findings[i].kind; i++) {
		said[findings[i].kind] = true;
		if (findings[i].kind == FINDING_CAUSE)
			cause_said[findings[i].n[0]] = true;
	}
}

/* ---- the model: who is called what ---- */

static struct model *m;

static void name_of(uint32_t source, int32_t pid, int32_t process, const char *comm)
{
	struct timeline_event e = NAME(source, 1, pid, process, 0);
	char text[16] = "";

	snprintf(text, sizeof(text), "%s", comm);
	memcpy(&e.event.arg0, text, 8);
	memcpy(&e.event.arg1, text + 8, 8);
	script_run(m, &e, 1);
}

static void name(uint32_t source, int32_t pid, const char *comm)
{
	name_of(source, pid, pid, comm);
}

static void origin(int32_t pid, const char *cgroup, const char *vm)
{
	struct task_origin o = {
		.tid = pid, .tgid = pid, .seen = {MS}, .vcpu_known = *vm != 0, .uid = 1000};

	o.claimed = pid == 889;
	snprintf(o.vm, sizeof(o.vm), "%s", vm);
	assert_int_equal(model_cgroup(m, cgroup, 0, 0, &o.cgroup), 0);
	assert_int_equal(model_task_origin_set(m, &o), 0);
}

static int setup(void **state)
{
	uint32_t number;

	(void)state;
	m = model_new();
	assert_non_null(m);
	script_vm(m, 2, "kvm");
	name(HOST, HOG, "hog");
	name(HOST, BASH, "bash");
	name(HOST, WAKER, "waker");
	name(HOST, 888, "CPU 0/KVM");
	name(HOST, 889, "CPU 0/KVM");
	name(HOST, 601, "job-1");
	name(HOST, 602, "job-2");
	name(HOST, 603, "make");
	name(HOST, 604, "cc");
	name(HOST, 700, "nginx");
	name_of(HOST, 701, 700, "worker");
	name(VM, SPINNER, "spinner");
	name(VM, WAITER, "waiter");
	name(VM, OTHER, "other");
	assert_int_equal(model_cgroup(m, "/vm.scope", 20000, 100000, &number), 0);
	assert_int_equal(number, 1);
	assert_int_equal(model_cgroup(m, "/vm.scope", 0, 0, &number), 0);
	assert_int_equal(number, 2);
	origin(888, "/machine.slice/web2.scope", "web2");
	origin(889, "/user.slice", "web3");
	origin(603, "/batch.slice", "");
	origin(604, "/batch.slice", "");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	model_free(m);
	return 0;
}

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

/* ---- seen ---- */

static const struct {
	const char *says;
	struct stall_facts f;
} sights[] = {
	{"the host kernel handled an exit", {STALL, SPAN(KVM)}},
	{"the VMM handled an exit", {STALL, SPAN(VMM)}},
	{"out of its cgroup's CPU quota", {STALL, SPAN(THROTTLED)}},
	{"unknown: events were lost", {STALL, SPAN(UNKNOWN, .why = UNKNOWN_LOST)}},
	{"unknown: its capture had not begun", {STALL, SPAN(UNKNOWN, .why = UNKNOWN_NOT_CAPTURED)}},
	{"unknown", {STALL, SPAN(UNKNOWN)}},
	{"stopped by SIGSTOP from bash (900)",
	 {STALL, SPAN(STOPPED, .signal_pid = BASH, .signal_number = 19)}},
	{"stopped by a signal from bash (900)",
	 {STALL, SPAN(STOPPED, .signal_pid = BASH, .signal_number = 10)}},
	{"frozen with its cgroup", {STALL, SPAN(STOPPED, .task_state = VS_TASK_FROZEN)}},
	{"stopped by its tracer bash (900)",
	 {STALL, SPAN(STOPPED, .task_state = VS_TASK_TRACED, .waker_pid = BASH)}},
	{"stopped by a debugger", {STALL, SPAN(STOPPED, .task_state = VS_TASK_TRACED)}},
	{"stopped by a signal sent before the recording",
	 {STALL, SPAN(STOPPED, .task_state = VS_TASK_STOPPED)}},
	{"paused by its VMM to complete its migration", {STALL, SPAN(STOPPED, .migrates = true)}},
	{"paused by its VMM", {STALL, SPAN(STOPPED)}},
	{"ready to run, but pCPU 3 was held by several tasks in turn for 400 ms, longest by hog (500): "
	 "90.0 ms",
	 {STALL, SPAN(RUNNABLE, .pcpu = 3, .holder_pid = HOG, .holder_ns = 90 * MS,
		      .pcpu_busy_ns = 400 * MS)}},
	{"ready to run, but pCPU 3 was held by hog (500) for 390 ms",
	 {STALL, SPAN(RUNNABLE, .pcpu = 3, .holder_pid = HOG, .holder_ns = 390 * MS,
		      .pcpu_busy_ns = 400 * MS)}},
	{"ready to run, but not run although pCPU 3 was idle",
	 {STALL, SPAN(RUNNABLE, .pcpu = 3, .pcpu_idle_ns = 400 * MS)}},
	{"ready to run on pCPU 3, but not run", {STALL, SPAN(RUNNABLE, .pcpu = 3)}},
	{"slept in the host, waiting for something (no stack)", {STALL, SPAN(BLOCKED)}},
	{"slept in the host, waiting for a block device, until waker (77) woke it",
	 {STALL, SPAN(BLOCKED, .wait_class = WAIT_BLOCK_IO, .waker_pid = WAKER)}},
	{"interrupt 0x24 (msi) was pending; then its handler ran",
	 {STALL, .lost = {.ns = 400 * MS, .vector = 0x24, .source = "msi"}}},
	{"interrupt 0x24 (msi) was pending; its handler has not run since",
	 {STALL, .lost = {.ns = 400 * MS, .vector = 0x24, .source = "msi", .open = true}}},
	{"in the guest, waiter (60) waited for this CPU; 1 task waited that long",
	 {TASK, .waiter_pid = WAITER, .waiter_ns = 400 * MS, .n_waiters = 1}},
	{"in the guest, waiter (60) waited for this CPU; 2 tasks waited that long",
	 {TASK, .waiter_pid = WAITER, .waiter_ns = 400 * MS, .n_waiters = 2}},
	{"in the guest, 1 timer tick (one every 4.0 ms is normal), the longest gap 400 ms",
	 {TASK, .ticks = 1, .tick_interval_ns = 4 * MS, .tick_gap_ns = 400 * MS}},
	{"in the guest, 25 timer ticks (one every 4.0 ms is normal), the longest gap 400 ms",
	 {TASK, .ticks = 25, .tick_interval_ns = 4 * MS, .tick_gap_ns = 400 * MS}},
	{"in the guest, interrupt 25 took 300 ms in 1 part",
	 {TASK, .n_interrupts = 1,
	  .interrupts = {{.kind = GUEST_CPU_HARDIRQ, .number = 25, .ns = 300 * MS, .count = 1}}}},
	{"in the guest, softirq NET_RX took 300 ms in 9000 parts",
	 {TASK, .n_interrupts = 1,
	  .interrupts = {{.kind = GUEST_CPU_SOFTIRQ, .number = 3, .ns = 300 * MS, .count = 9000}}}},
	{"in the guest, spinner (50) spins in _raw_spin_lock: 8 of 9 stack samples show it waiting "
	 "for a lock",
	 {TASK, .sampled = {.n = 9, .spins = 8, .spinning = true, .function = "_raw_spin_lock"}}},
	{"in the guest, spinner (50) spins in smp_call: 8 of 9 stack samples show it waiting for "
	 "other CPUs' answers",
	 {TASK, .sampled = {.n = 9, .calls = 8, .spinning = true, .function = "smp_call"}}},
	{"in the guest, the interrupt computes: 9 of 9 stack samples show no wait for a lock, most of "
	 "them in crc32",
	 {VECTOR(LOCAL_TIMER), .sampled = {.n = 9, .computing = true, .function = "crc32"}}},
	{"in the guest, spinner (50) computes: 9 of 9 stack samples show no wait for a lock, most of "
	 "them in its program's own code",
	 {TASK, .sampled = {.n = 9, .computing = true}}},
	{"kvm_halt_poll: new_ns=0 old_ns=0",
	 {TASK, .n_events = 1,
	  .events = {{.count = 1, .first = {.type = VS_EVENT_KVM_HALT_POLL}}}}},
	{"kvm_halt_poll: new_ns=0 old_ns=0, the first of 3",
	 {TASK, .n_events = 1,
	  .events = {{.count = 3, .first = {.type = VS_EVENT_KVM_HALT_POLL}}}}},
};

static void what_was_seen_has_its_sentence(void **state)
{
	static struct incident out;

	(void)state;
	for (size_t i = 0; i < COUNT(sights); i++) {
		memset(&out, 0, sizeof(out));
		describe_evidence(&sights[i].f, m, &out);
		assert_int_equal(out.n_evidence, 1);
		says(&out.evidence[0].seen, 1, sights[i].says);
	}
}

/* ---- the events that the user chose ---- */

static const struct message_user_event chosen[] = {
	{.system = "kprobe",
	 .name = "vfs_read",
	 .n_fields = 2,
	 .fields = {{"count", USER_SIGNED, 4}, {"path", USER_TEXT, 8}}},
	{.system = "a.system.whose.name.is.as.long.as.it.can.be...",
	 .name = "an.event.whose.name.is.as.long.as.the.name.of.an.event.can.be..",
	 .n_fields = 4,
	 .fields = {{"a.field.with.a.long.name.......", USER_HEX, 8},
		    {"a.field.with.a.long.name......2", USER_HEX, 8},
		    {"a.field.with.a.long.name......3", USER_HEX, 8},
		    {"a.field.with.a.long.name......4", USER_HEX, 8}}},
};
static const struct user_hit chosen_hits[] = {
	{.source = VM, .event = &chosen[0], .t_ns = 1200 * MS, .n_values = 2, .values = {7, '/'}},
	{.source = HOST,
	 .event = &chosen[1],
	 .t_ns = 1200 * MS,
	 .n_values = 4,
	 .values = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}},
};

static const struct {
	const char *says;
	struct stall_facts f;
} hits[] = {
	{"guest:kprobe:vfs_read count=7 path=/",
	 {STALL, .n_hits = 1, .hits = {{1, &chosen_hits[0]}}}},
	{"guest:kprobe:vfs_read count=7 path=/, the first of 3",
	 {STALL, .n_hits = 1, .hits = {{3, &chosen_hits[0]}}}},
	{"guest:kprobe:vfs_read count=7 path=/, the oldest that was kept of 512 or more",
	 {STALL, .n_hits = 1, .hits_cut = true, .hits = {{512, &chosen_hits[0]}}}},
	{"host:a.system.whose.name.is.as.long.as.it.can.be...:an.event.whose.name.is.as.long.as.the."
	 "name.of.an.event.can.be.. a.field.with.a.long.name.......=0xffffffffffffffff "
	 "a.field.with.a.long.name......2=0xffffffffffffffff ..., the first of 3",
	 {STALL, .n_hits = 1, .hits = {{3, &chosen_hits[1]}}}},
	{"1 hit of other events that were chosen", {STALL, .other_hits = 1}},
	{"9 hits of other events that were chosen", {STALL, .other_hits = 9}},
	{"9 or more hits of other events that were chosen",
	 {STALL, .other_hits = 9, .hits_cut = true}},
};

static void hits_have_their_sentence(void **state)
{
	static struct incident out;
	static struct stall_facts full = {
		STALL,           .n_events = FACTS_EVENTS, .n_hits = FACTS_HITS,
		.other_hits = 9, .n_spans = FACTS_SPANS,   .n_interrupts = FACTS_INTERRUPTS};

	(void)state;
	for (size_t i = 0; i < COUNT(hits); i++) {
		memset(&out, 0, sizeof(out));
		describe_evidence(&hits[i].f, m, &out);
		assert_int_equal(out.n_evidence, 1);
		says(&out.evidence[0].seen, 1, hits[i].says);
	}
	/* However much other evidence there is, these have room. */
	for (size_t i = 0; i < FACTS_SPANS; i++)
		full.spans[i] = (struct vcpu_span){
			.vm = VM, .state = VCPU_KVM, .begin = full.begin, .end = full.end};
	for (size_t i = 0; i < FACTS_INTERRUPTS; i++)
		full.interrupts[i] = (struct facts_interrupt){
			.kind = GUEST_CPU_SOFTIRQ, .number = 3, .ns = 300 * MS, .count = 2};
	for (size_t i = 0; i < FACTS_EVENTS; i++)
		full.events[i] = (struct facts_events){
			.count = 1, .t = full.begin, .first = {.type = VS_EVENT_SIGNAL}};
	for (size_t i = 0; i < FACTS_HITS; i++)
		full.hits[i] = (struct facts_hits){1, &chosen_hits[0]};
	memset(&out, 0, sizeof(out));
	describe_evidence(&full, m, &out);
	assert_int_equal(out.n_evidence, REPORT_EVIDENCE_MAX);
	assert_string_equal(finding_text(&out.evidence[REPORT_EVIDENCE_MAX - 1].seen, 1).text,
			    "9 hits of other events that were chosen");
	assert_string_equal(
		finding_text(&out.evidence[REPORT_EVIDENCE_MAX - 1 - FACTS_HITS].seen, 1).text,
		"guest:kprobe:vfs_read count=7 path=/");
}

static void a_line_of_the_hosts_log_is_evidence(void **state)
{
	static const struct stall_facts f = {STALL};
	static struct incident out;
	struct model *with_log = model_new();

	(void)state;
	model_host_log(with_log, (struct host_ns){1200 * MS},
		       "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [hog:500]");
	describe_evidence(&f, with_log, &out);
	assert_int_equal(out.n_evidence, 1);
	says(&out.evidence[0].seen, 1,
	     "the host's kernel log: watchdog: BUG: soft lockup - CPU#0 stuck "
	     "for 22s! [hog:500]");
	model_free(with_log);
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

/* Who held the pCPU, beside the name. */
static void who_it_was_has_its_words(void **state)
{
	static const struct stall_facts f = {TASK,
					     DATA,
					     .denied = true,
					     .longest_chain_ns = 500 * MS,
					     .state_ns = {[VCPU_RUNNABLE] = 500 * MS},
					     .pcpu_busy_ns = 500 * MS,
					     .n_holders = 5,
					     .holders = {{601, 75 * MS},
							 {602, 75 * MS},
							 {888, 120 * MS},
							 {889, 80 * MS},
							 {701, 70 * MS}}};
	static struct incident out;

	(void)state;
	verdict_judge(&f, m, &out);
	assert_int_equal(out.n_culprits, 5);
	assert_string_equal(culprit_what_text(&out.culprits[0]).text, "2 tasks of such names");
	assert_string_equal(culprit_what_text(&out.culprits[1]).text, "VM web2, vCPU 0");
	assert_string_equal(culprit_what_text(&out.culprits[2]).text,
			    "VM web3, vCPU 0 (unverified name, a process of user 1000)");
	assert_string_equal(culprit_what_text(&out.culprits[3]).text, "of process 700 (nginx)");
	assert_string_equal(culprit_what_text(&out.culprits[4]).text, "all other tasks");
	assert_int_equal(out.culprits[4].share_ns, 80 * MS);
	for (size_t i = 0; i < out.n_culprits; i++)
		assert_int_equal(out.culprits[i].role, CULPRIT_HELD_PCPU);
}

static const struct {
	void (*culprits)(const struct stall_facts *f, const struct model *m, struct incident *out);
	const char *did, *is;
	struct stall_facts f;
} blamed[] = {
	{culprits_senders, "sent the stop signal", "", {TASK, SPAN(STOPPED, .signal_pid = BASH)}},
	{culprits_senders, "wrote to QEMU's monitor", "", {TASK, SPAN(STOPPED, .asker_pid = BASH)}},
	{culprits_senders,
	 "traced the vCPU thread",
	 "",
	 {TASK, SPAN(STOPPED, .task_state = VS_TASK_TRACED, .waker_pid = BASH)}},
	{culprits_holders,
	 "held the pCPU",
	 "",
	 {TASK, .pcpu_busy_ns = 400 * MS, .n_holders = 1, .holders = {{HOG, 400 * MS}}}},
	{culprits_lock_holders,
	 "held QEMU's big lock",
	 "",
	 {TASK, SPAN(BLOCKED, .wait_class = WAIT_VMM_LOCK, .waker_pid = WAKER)}},
	{culprits_page_providers,
	 "provided the page",
	 "",
	 {TASK, SPAN(BLOCKED, .wait_class = WAIT_USERFAULT, .waker_pid = WAKER)}},
	{culprits_of_lock_owner, "held the other vCPU's pCPU", "", {TASK, LOCK_OWNER(HELD_PCPU)}},
	{culprits_of_lock_owner, "stopped the other vCPU", "", {TASK, LOCK_OWNER(STOPPED)}},
	{culprits_of_lock_owner, "traced the other vCPU", "", {TASK, LOCK_OWNER(TRACED)}},
	{culprits_of_lock_owner, "wrote to QEMU's monitor", "", {TASK, LOCK_OWNER(ASKED)}},
	{culprits_of_lock_owner, "held QEMU's big lock", "", {TASK, LOCK_OWNER(BIG_LOCK)}},
	{culprits_of_lock_owner, "provided the page", "", {TASK, LOCK_OWNER(PAGE)}},
	{culprits_guest_task, "kept the CPU", "", {TASK}},
	{culprits_guest_task, "was interrupted", "", {VECTOR(LOCAL_TIMER), .pid = SPINNER}},
	{culprits_guest_task,
	 "kept the other CPU",
	 "on CPU 1",
	 {TASK, .guest_peer = {.known = true, .cpu = 1, .kind = GUEST_CPU_TASK, .pid = OTHER}}},
	{culprits_guest_task,
	 "was interrupted on the other CPU",
	 "on CPU 1",
	 {TASK, .guest_peer = {.known = true, .cpu = 1, .kind = GUEST_CPU_SOFTIRQ, .pid = OTHER}}},
};

static void what_it_did_has_its_words(void **state)
{
	static struct incident out;
	bool did[CULPRIT_ROLE_COUNT] = {false};

	(void)state;
	for (size_t i = 0; i < COUNT(blamed); i++) {
		memset(&out, 0, sizeof(out));
		blamed[i].culprits(&blamed[i].f, m, &out);
		assert_int_equal(out.n_culprits, 1);
		assert_string_equal(culprit_role_text(&out.culprits[0]), blamed[i].did);
		assert_string_equal(culprit_what_text(&out.culprits[0]).text, blamed[i].is);
		did[out.culprits[0].role] = true;
	}
	for (int r = 0; r < CULPRIT_ROLE_COUNT; r++) {
		if (!did[r])
			fail_msg("no row has the role %d", r);
	}
}

/* ---- no sentence without a row ---- */

static void no_finding_is_without_a_row(void **state)
{
	static const char *const names[] = {
#define X(NAME) [FINDING_##NAME] = #NAME,
		FINDINGS(X)
#undef X
	};
	size_t unsaid = 0;

	(void)state;
	for (int k = FINDING_NONE + 1; k < FINDING_COUNT; k++) {
		if (!said[k]) {
			print_error("no row of test_sentences.c produces FINDING_%s\n", names[k]);
			unsaid++;
		}
	}
	for (size_t r = 0; r < verdict_rules_count; r++) {
		const struct verdict_rule *rule = &verdict_rules[r];

		if (!rule->because && !cause_said[rule->verdict]) {
			print_error("no row of test_sentences.c has the cause %s\n",
				    verdict_name(rule->verdict));
			unsaid++;
		}
	}
	assert_int_equal(unsaid, 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cause_has_its_sentence),
		cmocka_unit_test(what_was_denied_has_its_sentence),
		cmocka_unit_test(what_was_seen_has_its_sentence),
		cmocka_unit_test(hits_have_their_sentence),
		cmocka_unit_test(a_line_of_the_hosts_log_is_evidence),
		cmocka_unit_test(every_detector_has_its_sentence),
		cmocka_unit_test(the_judge_says_what_it_cannot_tell),
		cmocka_unit_test(who_it_was_has_its_words),
		cmocka_unit_test(what_it_did_has_its_words),
		cmocka_unit_test(a_long_sentence_is_cut),
		cmocka_unit_test(no_finding_is_without_a_row),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
