/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests stalls that an interrupt causes: one that KVM accepted and no handler took, a tick that
 * the host's timer delayed; and similar stories with another cause. */
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_tale.h"

#include "host-collector/analyze/stall/verdict.h"
#include "tests/unit/balance.h"

enum { VMX = 1, EXIT_EXTERNAL = 1, EXIT_HLT = 12, DEVICE = 0x22, TICK = 0xec, KICK = 0xfd };
enum { IRQ_NUMBER = 24, QEMU_IO = 77 };

static struct tale tale;

static void leaves(struct tale *t, int64_t at, uint64_t reason)
{
	ADD(t, KVM(at, 0, EXIT, TID0, reason | (uint64_t)VMX << 32));
}

static void handler(struct tale *t, int64_t at, uint64_t vector, int32_t pid)
{
	if (vector == DEVICE) {
		ADD(t, IRQ(at, 0, IRQ_ENTRY, pid, IRQ_NUMBER));
		ADD(t, IRQ(at + 3, 0, IRQ_EXIT, pid, IRQ_NUMBER));
		return;
	}
	ADD(t, EVENT(VM, at, 0, VECTOR_ENTRY, pid, 0,
		     vector == TICK ? VS_VECTOR_LOCAL_TIMER : VS_VECTOR_RESCHEDULE, vector));
	ADD(t, EVENT(VM, at + 3, 0, VECTOR_EXIT, pid, 0,
		     vector == TICK ? VS_VECTOR_LOCAL_TIMER : VS_VECTOR_RESCHEDULE, vector));
}

/* KVM has it already, and now the guest takes it. */
static void taken(struct tale *t, int64_t at, uint64_t vector, int32_t pid)
{
	ADD(t, KVM(at - 3, 0, INJECT, TID0, vector));
	ADD(t, KVM(at - 2, 0, ENTRY, TID0, 0));
	handler(t, at, vector, pid);
}

/* The vCPU leaves the guest for its timer, which is handled at `at`. */
static void tick(struct tale *t, int64_t at, int32_t pid)
{
	leaves(t, at - 6, EXIT_EXTERNAL);
	ADD(t, KVM(at - 5, 0, ACCEPT_IRQ, TID0, TICK));
	taken(t, at, TICK, pid);
}

static void ticks(struct tale *t, int64_t from_us, int64_t to_us, int32_t pid)
{
	for (int64_t at = from_us; at < to_us; at += TICK_US)
		tick(t, at, pid);
}

/* A device of QEMU's, on another pCPU. */
static void raised(struct tale *t, int64_t at)
{
	ADD(t, EVENT(HOST, at, 1, KVM_MSI, QEMU_IO, 0, 0xfee00000, DEVICE));
	ADD(t, EVENT(HOST, at + 2, 1, KVM_ACCEPT_IRQ, QEMU_IO, 0, DEVICE, 0));
}

/* 200 ms of every story; a device interrupt that went well, so that all is known. */
static void begins(struct tale *t)
{
	tale_begin(t);
	raised(t, 150000);
	leaves(t, 150010, EXIT_EXTERNAL);
	taken(t, 150020, DEVICE, 42);
	ticks(t, 204000, 300000, 50);
}

/* The guest CPU idles and its vCPU halts from 300 ms on. */
static void idles(struct tale *t, int64_t to_us)
{
	ADD(t, SWITCH(VM, 300000, 0, 50, 0, 1));
	leaves(t, 300010, EXIT_HLT);
	ADD(t, SWITCH(HOST, 300020, 0, TID0, 0, 1));
	if (!to_us)
		return;
	ADD(t, WAKEUP(HOST, to_us - 30, 1, TID0, QEMU_IO, 0));
	ADD(t, SWITCH(HOST, to_us - 20, 0, 0, TID0, 0));
}

static void lost_while_it_halts(struct tale *t)
{
	begins(t);
	idles(t, 710000);
	raised(t, 310000);
	taken(t, 710000, DEVICE, 0);
	ADD(t, SWITCH(VM, 710100, 0, 0, 50, 0));
	ticks(t, 712000, 720000, 50);
	ADD(t, SWITCH(VM, 720000, 0, 50, 42, 1));
}

static void lost_for_ever(struct tale *t)
{
	begins(t);
	idles(t, 710000);
	raised(t, 310000);
	ADD(t, KVM(709990, 0, ENTRY, TID0, 0));
	ADD(t, SWITCH(VM, 710100, 0, 0, 50, 0));
	ticks(t, 712000, 720000, 50);
	ADD(t, SWITCH(VM, 720000, 0, 50, 42, 1));
	ADD(t, SWITCH(VM, 730000, 0, 42, 50, 1));
}

static void lost_while_the_guest_goes_on(struct tale *t)
{
	begins(t);
	raised(t, 310000);
	for (int64_t at = 300000; at < 700000; at += 50000) {
		ADD(t, SWITCH(VM, at, 0, 50, 42, 0));
		ticks(t, at + 1000, at + 24000, 42);
		ADD(t, SWITCH(VM, at + 25000, 0, 42, 50, 0));
		ticks(t, at + 26000, at + 49000, 50);
	}
	leaves(t, 709990, EXIT_EXTERNAL);
	taken(t, 710000, DEVICE, 50);
	ADD(t, SWITCH(VM, 720000, 0, 50, 42, 1));
}

/* Another CPU calls this one to run task 60, which waits; ticks and their softirqs go on. */
static void lost_call(struct tale *t)
{
	begins(t);
	ADD(t, EVENT(VM, 300000, 1, SCHED_WAKEUP, 60, 70, 0, 120));
	ADD(t, SWITCH(VM, 300005, 1, 70, 0, 1));
	ADD(t, SWITCH(HOST, 1, 1, 0, TID1, 0));
	ADD(t, EVENT(HOST, 300002, 1, KVM_IPI, TID1, 0, KICK, 0));
	ADD(t, EVENT(HOST, 300004, 1, KVM_ACCEPT_IRQ, TID1, 0, KICK, 0));
	for (int64_t at = 304000; at < 700000; at += TICK_US) {
		tick(t, at, 50);
		ADD(t, IRQ(at + 4, 0, SOFTIRQ_ENTRY, 50, 1));
		ADD(t, IRQ(at + 6, 0, SOFTIRQ_EXIT, 50, 1));
	}
	leaves(t, 709990, EXIT_EXTERNAL);
	taken(t, 710000, KICK, 50);
	ADD(t, SWITCH(VM, 710010, 0, 50, 60, 0));
}

static void waiter(struct tale *t)
{
	ADD(t, WAKEUP(VM, 301000, 0, 60, 50, 0));
}

static void late_tick_alone(struct tale *t)
{
	begins(t);
	ticks(t, 700000, 710000, 50);
	ADD(t, SWITCH(VM, 710000, 0, 50, 60, 0));
}

static void late_tick(struct tale *t)
{
	late_tick_alone(t);
	waiter(t);
}

/* The tick comes in time, and the guest does not take it. */
static void interrupts_off(struct tale *t)
{
	begins(t);
	leaves(t, 303990, EXIT_EXTERNAL);
	ADD(t, KVM(303992, 0, ACCEPT_IRQ, TID0, TICK));
	ADD(t, KVM(303994, 0, ENTRY, TID0, 0));
	leaves(t, 699990, EXIT_EXTERNAL);
	taken(t, 700000, TICK, 50);
	ticks(t, 704000, 710000, 50);
	ADD(t, SWITCH(VM, 710000, 0, 50, 60, 0));
	waiter(t);
}

/* Both come late, because the vCPU does not run. */
static void pcpu_taken(struct tale *t)
{
	begins(t);
	leaves(t, 300000, EXIT_EXTERNAL);
	tale_away(t, 300010, 699900, VS_TASK_RUNNING, 500);
	raised(t, 310000);
	ADD(t, KVM(699950, 0, ACCEPT_IRQ, TID0, TICK));
	taken(t, 700000, TICK, 50);
	leaves(t, 700020, EXIT_EXTERNAL);
	taken(t, 700030, DEVICE, 50);
	ticks(t, 704000, 710000, 50);
	ADD(t, SWITCH(VM, 710000, 0, 50, 60, 0));
	waiter(t);
}

/* Its task computes for 150 ms more, and 60 waits for it all the time. */
static void pcpu_taken_from_a_spinner(struct tale *t)
{
	begins(t);
	leaves(t, 300000, EXIT_EXTERNAL);
	tale_away(t, 300010, 699900, VS_TASK_RUNNING, 500);
	ADD(t, KVM(699950, 0, ACCEPT_IRQ, TID0, TICK));
	taken(t, 700000, TICK, 50);
	ticks(t, 704000, 850000, 50);
	ADD(t, SWITCH(VM, 850000, 0, 50, 60, 0));
	waiter(t);
}

static void late_below_the_threshold(struct tale *t)
{
	begins(t);
	ticks(t, 380000, 500000, 50);
	ADD(t, SWITCH(VM, 500000, 0, 50, 42, 0));
	raised(t, 510000);
	leaves(t, 590000, EXIT_EXTERNAL);
	ticks(t, 504000, 588000, 42);
	taken(t, 590010, DEVICE, 42);
	ADD(t, SWITCH(VM, 591000, 0, 42, 50, 0));
}

/* An idle CPU is woken for its timer, and its handler begins 400 ms later. */
static void idle_takes_it_late(struct tale *t)
{
	begins(t);
	idles(t, 310000);
	ADD(t, KVM(309960, 0, ACCEPT_IRQ, TID0, TICK));
	ADD(t, KVM(310003, 0, INJECT, TID0, TICK));
	ADD(t, KVM(310004, 0, ENTRY, TID0, 0));
	for (int64_t at = 311000; at < 709000; at += 4000) {
		leaves(t, at, EXIT_EXTERNAL);
		ADD(t, KVM(at + 2, 0, ENTRY, TID0, 0));
	}
	handler(t, 710000, TICK, 0);
	ADD(t, SWITCH(VM, 710100, 0, 0, 50, 0));
	ticks(t, 712000, 720000, 50);
	ADD(t, SWITCH(VM, 720000, 0, 50, 42, 1));
}

/* The same, and a device's interrupt waits behind the timer. */
static void idle_takes_two_late(struct tale *t)
{
	idle_takes_it_late(t);
	raised(t, 400000);
	taken(t, 710020, DEVICE, 0);
}

/* The timer wakes the vCPU of an idle CPU, whose pCPU another task holds. */
static void idle_waits_for_its_pcpu(struct tale *t)
{
	begins(t);
	ADD(t, SWITCH(VM, 300000, 0, 50, 0, 1));
	leaves(t, 300010, EXIT_HLT);
	ADD(t, SWITCH(HOST, 300020, 0, TID0, 500, 1));
	ADD(t, KVM(309960, 0, ACCEPT_IRQ, TID0, TICK));
	ADD(t, WAKEUP(HOST, 309970, 1, TID0, QEMU_IO, 0));
	ADD(t, SWITCH(HOST, 709980, 0, 500, TID0, VS_TASK_RUNNING));
	taken(t, 710000, TICK, 0);
	ADD(t, SWITCH(VM, 710100, 0, 0, 50, 0));
	ticks(t, 712000, 720000, 50);
	ADD(t, SWITCH(VM, 720000, 0, 50, 42, 1));
}

/* The entry of a softirq is lost at 400 ms; an interrupt inside it begins another 100 ms later. */
static void unseen_softirq(struct tale *t)
{
	begins(t);
	ticks(t, 304000, 400000, 50);
	leaves(t, 400010, EXIT_EXTERNAL);
	ADD(t, KVM(400020, 0, ENTRY, TID0, 0));
	ADD(t, IRQ(400030, 0, SOFTIRQ_ENTRY, 50, 1));
	ADD(t, IRQ(400040, 0, SOFTIRQ_EXIT, 50, 1));
	ADD(t, EVENT(VM, 400050, 0, LOST, 0, 0, 1, 1));
	for (int64_t at = 402000; at < 700000; at += 50000) {
		leaves(t, at - 6, EXIT_EXTERNAL);
		taken(t, at, KICK, 50);
	}
	ADD(t, IRQ(700000, 0, SOFTIRQ_EXIT, 50, 3));
	ticks(t, 704000, 710000, 50);
	ADD(t, SWITCH(VM, 710000, 0, 50, 60, 0));
	waiter(t);
}

/* ---- entries of which the exit was never captured ---- */

static void never_exits(struct tale *t, int64_t at, enum vs_vector vector, int32_t pid)
{
	ADD(t, EVENT(VM, at, 0, VECTOR_ENTRY, pid, 0, vector, 0xfc));
}

/* An agent that starts: the probe of entries works, that of exits does not yet. */
static void open_call_over_a_halted_vcpu(struct tale *t)
{
	begins(t);
	idles(t, 2300000);
	never_exits(t, 300005, VS_VECTOR_CALL_FUNCTION, 0);
	ADD(t, KVM(2299990, 0, ENTRY, TID0, 0));
	ADD(t, SWITCH(VM, 2300100, 0, 0, 50, 0));
	ticks(t, 2302000, 2310000, 50);
	ADD(t, SWITCH(VM, 2310000, 0, 50, 42, 1));
}

static void open_calls_inside_each_other(struct tale *t)
{
	begins(t);
	idles(t, 2300000);
	for (int64_t at = 300005; at < 300010; at++)
		never_exits(t, at, VS_VECTOR_CALL_FUNCTION, 0);
	never_exits(t, 300010, VS_VECTOR_LOCAL_TIMER, 0);
	ADD(t, KVM(2299990, 0, ENTRY, TID0, 0));
	ADD(t, SWITCH(VM, 2300100, 0, 0, 50, 0));
	ticks(t, 2302000, 2310000, 50);
	ADD(t, SWITCH(VM, 2310000, 0, 50, 42, 1));
}

static void open_call_until_the_data_end(struct tale *t)
{
	begins(t);
	idles(t, 0);
	never_exits(t, 300005, VS_VECTOR_CALL_FUNCTION, 0);
	ADD(t, SWITCH(HOST, 2300000, 1, 77, 500, 1));
}

/* The task that it interrupted computes on, and switches: nobody waited. */
static void open_call_over_a_busy_task(struct tale *t)
{
	begins(t);
	never_exits(t, 300005, VS_VECTOR_CALL_FUNCTION, 50);
	ticks(t, 304000, 800000, 50);
	ADD(t, SWITCH(VM, 800000, 0, 50, 42, 1));
	ADD(t, SWITCH(VM, 810000, 0, 42, 50, 1));
}

/* What comes after one is judged by itself. */
static void long_handler_after_an_open_call(struct tale *t)
{
	begins(t);
	never_exits(t, 300005, VS_VECTOR_CALL_FUNCTION, 50);
	ADD(t, IRQ(310000, 0, IRQ_ENTRY, 50, IRQ_NUMBER));
	ADD(t, IRQ(710000, 0, IRQ_EXIT, 50, IRQ_NUMBER));
	ticks(t, 712000, 720000, 50);
	ADD(t, SWITCH(VM, 720000, 0, 50, 42, 1));
}

static const struct {
	const char *name;
	void (*emit)(struct tale *t);
	enum verdict verdict; /* UNDETERMINED: no incident */
	enum confidence confidence;
	enum guest_cpu_state kind;
	int64_t begin_us, end_us;
	bool ongoing;
} stories[] = {
	{"a device's interrupt is lost, the vCPU halts", lost_while_it_halts,
	 VERDICT_INTERRUPT_LOST, CONFIDENCE_DECIDED, GUEST_CPU_IDLE, 310000, 710000, false},
	{"the same, and it never comes", lost_for_ever, VERDICT_INTERRUPT_LOST, CONFIDENCE_DECIDED,
	 GUEST_CPU_IDLE, 310000, 730000, true},
	{"a device's interrupt is lost, the guest goes on", lost_while_the_guest_goes_on,
	 VERDICT_INTERRUPT_LOST, CONFIDENCE_DECIDED, GUEST_CPU_UNKNOWN, 310000, 710000, false},
	{"a call of another CPU is lost, a task waits", lost_call, VERDICT_INTERRUPT_LOST,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 200000, 710010, false},
	{"the timer comes late, a task waits", late_tick, VERDICT_TIMER_LATE, CONFIDENCE_DECIDED,
	 GUEST_CPU_TASK, 200000, 710000, false},
	{"the timer comes late, nobody waits", late_tick_alone, VERDICT_TIMER_LATE,
	 CONFIDENCE_LIKELY, GUEST_CPU_TASK, 200000, 710000, false},
	{"the guest does not take its timer", interrupts_off, VERDICT_GUEST_SPIN,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 200000, 710000, false},
	{"timer and device late, the vCPU does not run", pcpu_taken, VERDICT_VCPU_NOT_SCHEDULED,
	 CONFIDENCE_DECIDED, GUEST_CPU_TASK, 200000, 710000, false},
	{"the timer late, the vCPU does not run, the task spins before and after",
	 pcpu_taken_from_a_spinner, VERDICT_VCPU_NOT_SCHEDULED, CONFIDENCE_LIKELY, GUEST_CPU_TASK,
	 200000, 850000, false},
	{"a call's exit was never captured, the vCPU halts", open_call_over_a_halted_vcpu,
	 VERDICT_UNDETERMINED, 0, 0, 0, 0, false},
	{"exits of vectors inside each other were never captured", open_calls_inside_each_other,
	 VERDICT_UNDETERMINED, 0, 0, 0, 0, false},
	{"the same, and nothing follows", open_call_until_the_data_end, VERDICT_UNDETERMINED, 0, 0,
	 0, 0, false},
	{"the same over a task that computes", open_call_over_a_busy_task, VERDICT_UNDETERMINED, 0,
	 0, 0, 0, false},
	{"a long handler after such a call", long_handler_after_an_open_call, VERDICT_GUEST_SPIN,
	 CONFIDENCE_LIKELY, GUEST_CPU_HARDIRQ, 310000, 710000, false},
	{"an idle CPU takes its timer late, its vCPU runs", idle_takes_it_late, VERDICT_GUEST_SPIN,
	 CONFIDENCE_LIKELY, GUEST_CPU_IDLE, 309960, 710000, false},
	{"the same, and a device's interrupt behind it", idle_takes_two_late, VERDICT_GUEST_SPIN,
	 CONFIDENCE_LIKELY, GUEST_CPU_IDLE, 309960, 710000, false},
	{"an idle CPU takes its timer late, its vCPU waits for its pCPU", idle_waits_for_its_pcpu,
	 VERDICT_VCPU_NOT_SCHEDULED, CONFIDENCE_DECIDED, GUEST_CPU_IDLE, 309970, 709998, false},
	{"both late, below the threshold", late_below_the_threshold, VERDICT_UNDETERMINED, 0, 0, 0,
	 0, false},
};

static void check(struct incident *i, size_t story)
{
	print_message("  %s: %s, %s: %s; denied: %s\n", stories[story].name,
		      verdict_name(i->verdict), confidence_name(i->confidence),
		      because_text(i).text, denied_text(i).text);
	assert_incident_balances(i);
	assert_int_equal(i->verdict, stories[story].verdict);
	assert_int_equal(i->confidence, stories[story].confidence);
	assert_int_equal(i->kind, stories[story].kind);
	assert_int_equal(i->begin.ns, stories[story].begin_us * 1000);
	assert_int_equal(i->end.ns, stories[story].end_us * 1000);
	assert_int_equal(i->ongoing, stories[story].ongoing);
	if (strstr(stories[story].name, "spins before and after"))
		assert_int_equal(i->runner_up, VERDICT_GUEST_SPIN);
}

static void what_interrupts_do_is_told(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(stories); k++) {
		struct report_options options = {.than_ns = 100000000};
		struct model *m = model_new();
		struct report_builder *b = report_builder_new(m, &options);
		struct report *r;

		script_vm(m, 2, "kvm");
		stories[k].emit(&tale);
		tale_play(&tale, m);
		model_finish(m);
		r = report_builder_finish(b);
		for (size_t i = 0; i < r->n_incidents; i++)
			check(&r->incidents[i], k);
		assert_int_equal(r->n_incidents, stories[k].verdict != VERDICT_UNDETERMINED);
		report_free(r);
		report_builder_free(b);
		model_free(m);
	}
}

/* What lies before a softirq whose entry was lost ends where the softirq began. */
static void an_unseen_softirq_takes_its_own_time_only(void **state)
{
	struct report_options options = {.than_ns = 100000000, .all = true};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct report *r;
	int softirqs = 0;

	(void)state;
	script_vm(m, 2, "kvm");
	unseen_softirq(&tale);
	tale_play(&tale, m);
	model_finish(m);
	r = report_builder_finish(b);
	assert_balances(r);
	for (size_t i = 0; i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];

		softirqs += x->kind == GUEST_CPU_SOFTIRQ;
		if (x->kind == GUEST_CPU_SOFTIRQ)
			assert_int_equal(x->begin.ns, 402000000);
		if (x->begin.ns == 200000000)
			assert_int_equal(x->end.ns, 402000000);
	}
	assert_int_equal(softirqs, 1);
	report_free(r);
	report_builder_free(b);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_interrupts_do_is_told),
		cmocka_unit_test(an_unseen_softirq_takes_its_own_time_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
