/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests stalls with several causes, with gaps, or with many short waits, and stalls that follow
 * another one. */
#include "tests/unit/verdict_story.h"

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
static void a_pause_before_a_long_interrupt_is_reported(void **state)
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
	assert_null(strstr(because_text(i).text, "charged"));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_before_a_long_interrupt_is_reported),
		cmocka_unit_test(three_causes_are_named_with_their_shares),
		cmocka_unit_test(what_was_seen_around_a_gap_makes_likely),
		cmocka_unit_test(a_spin_is_not_decided_by_what_was_not_seen),
		cmocka_unit_test(who_pays_for_a_pause_blames_nobody_for_sure),
		cmocka_unit_test(what_is_normal_is_not_learnt_from_the_sick_state),
		cmocka_unit_test(short_waits_without_the_guest_add_up),
		cmocka_unit_test(sleeps_in_page_faults_need_no_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
