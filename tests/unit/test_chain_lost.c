// SPDX-License-Identifier: GPL-2.0-only
/* Tests late and lost interrupts, and those about which the events cannot decide. */
#include "tests/unit/chain_script.h"

/* Both the injection and the handler may be in a gap: the next accept begins a chain of its own,
 * instead of one that has waited since. */
static void a_gap_tears_the_open_chain(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		EXIT(20, 0, TID0),
		ACCEPT(30, 0, TID0, TICK, 0),
		INJECT(40, 0, TID0, TICK),
		ENTRY(50, 0, TID0),
		VECTOR(60, 0, TICK),
		VECTOR_DONE(70, 0, TICK),
		EXIT(1000, 0, TID0),
		ACCEPT(1010, 0, TID0, TICK, 0),
		GAP(HOST, 1020, 0, 5),
		GAP(VM, 1030, 0, 5),
		EXIT(3000, 0, TID0),
		ACCEPT(3010, 0, TID0, TICK, 0),
		INJECT(3020, 0, TID0, TICK),
		ENTRY(3030, 0, TID0),
		VECTOR(3040, 0, TICK),
		VECTOR_DONE(3050, 0, TICK),
	};
	struct reported t;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 2);
	expect_stage(&t.closed[1], CHAIN_STAGE_LATENCY, 30);
	assert_int_equal(t.closed[1].coalesced, 0);
	assert_int_equal(group_find(&t, TICK)->torn, 1);
	reported_free(&t);
}

/* Accepted, and the guest goes on for 20 ms switching tasks: it is lost; a kick brings it. */
static const struct timeline_event lost_story[] = {
	SWITCH(HOST, 0, 0, 0, TID0, 0),
	ENTRY(10, 0, TID0),
	EXIT(20, 0, TID0),
	ACCEPT(30, 0, TID0, TICK, 0),
	INJECT(40, 0, TID0, TICK),
	ENTRY(50, 0, TID0),
	VECTOR(60, 0, TICK),
	VECTOR_DONE(70, 0, TICK),
	MSI(1000, 1, VHOST, DEVICE),
	ACCEPT(1010, 1, VHOST, DEVICE, 0),
	SWITCH(VM, 5000, 0, 0, 50, 0),
	SWITCH(VM, 9000, 0, 50, 51, 0),
	SWITCH(VM, 15000, 0, 51, 50, 0),
	SWITCH(VM, 21000, 0, 50, 51, 0),
	EXIT(30000, 0, TID0),
	INJECT(30010, 0, TID0, DEVICE),
	ENTRY(30020, 0, TID0),
	HANDLER(30030, 0, IRQ),
	HANDLED(30040, 0, IRQ),
};

static void an_interrupt_that_nobody_delivers_is_lost(void **unused)
{
	const struct chain_trouble *trouble;
	struct reported t;

	(void)unused;
	reported_of(&t, lost_story, COUNT(lost_story));
	trouble = chains_trouble_in(t.chains, VM, 0, CHAIN_LOST, false, (struct host_ns){0},
				    (struct host_ns){40000000});
	assert_non_null(trouble);
	assert_int_equal(trouble->chain.vector, DEVICE);
	assert_false(trouble->open);
	assert_int_equal(trouble->until.ns, 30030000);
	assert_true(trouble->progress >= 2);
	assert_int_equal(group_find(&t, DEVICE)->lost, 1);
	assert_int_equal(group_find(&t, DEVICE)->late, 0);
	assert_null(chains_trouble(t.chains, 1));
	reported_free(&t);
}

/* That the guest takes other interrupts meanwhile, tick after tick, shows as well that it could. */
static void an_interrupt_that_others_overtake_is_lost(void **unused)
{
	struct timeline_event story[64] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		MSI(1000, 1, VHOST, DEVICE),
		ACCEPT(1001, 1, VHOST, DEVICE, 0),
	};
	size_t n = 4;
	struct reported t;

	(void)unused;
	for (uint64_t us = 4000; us < 32000; us += 4000) {
		const struct timeline_event tick[] = {
			EXIT(us, 0, TID0),
			ACCEPT(us + 1, 0, TID0, TICK, 0),
			INJECT(us + 2, 0, TID0, TICK),
			ENTRY(us + 3, 0, TID0),
			VECTOR(us + 10, 0, TICK),
			VECTOR_DONE(us + 15, 0, TICK),
		};

		memcpy(story + n, tick, sizeof(tick));
		n += COUNT(tick);
	}
	reported_of(&t, story, n);
	assert_int_equal(group_find(&t, DEVICE)->lost, 1);
	assert_int_equal(group_find(&t, TICK)->lost, 0);
	reported_free(&t);
}

/* But not those that had come as well and go first, one right after the other. */
static void an_interrupt_that_must_wait_for_others_is_late(void **unused)
{
	static const uint8_t first[] = {0xa1, 0xa2, 0xa3, 0xa4, 0xa5};
	struct timeline_event story[64] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		MSI(1000, 1, VHOST, DEVICE),
		ACCEPT(1001, 1, VHOST, DEVICE, 0),
	};
	uint64_t us = 1010;
	size_t n = 4;
	struct reported t;

	(void)unused;
	for (size_t i = 0; i < COUNT(first); i++) {
		story[n++] = (struct timeline_event)MSI(us, 1, VHOST, first[i]);
		story[n++] = (struct timeline_event)ACCEPT(us + 1, 1, VHOST, first[i], 0);
		us += 10;
	}
	for (size_t i = 0; i <= COUNT(first); i++, us += 5000) {
		uint8_t vector = i < COUNT(first) ? first[i] : DEVICE;
		const struct timeline_event run[] = {
			EXIT(us, 0, TID0),
			INJECT(us + 2, 0, TID0, vector),
			ENTRY(us + 3, 0, TID0),
			VECTOR(us + 10, 0, vector),
			VECTOR_DONE(us + 4990, 0, vector),
		};

		memcpy(story + n, run, sizeof(run));
		n += COUNT(run);
	}
	reported_of(&t, story, n);
	assert_int_equal(group_find(&t, DEVICE)->handled, 1);
	assert_int_equal(group_find(&t, DEVICE)->lost, 0);
	assert_int_equal(group_find(&t, DEVICE)->late, 1);
	reported_free(&t);
}

/* Of a task that may belong to any VM; but the guest has handled whatever that raised before. */
static void who_raised_the_guests_own_before_raises_its_own(void **unused)
{
	struct timeline_event story[64] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
	};
	size_t n = 2;
	uint64_t us = 100;
	struct reported t;

	(void)unused;
	for (int i = 0; i < 6; i++, us += 1000) {
		const struct timeline_event quick[] = {
			MSI(us, 1, STRANGER, DEVICE), ACCEPT(us + 1, 1, STRANGER, DEVICE, 0),
			EXIT(us + 5, 0, TID0),        INJECT(us + 6, 0, TID0, DEVICE),
			ENTRY(us + 7, 0, TID0),       HANDLER(us + 10, 0, IRQ),
			HANDLED(us + 15, 0, IRQ),
		};

		memcpy(story + n, quick, sizeof(quick));
		n += COUNT(quick);
	}
	story[n++] = (struct timeline_event)MSI(us, 1, STRANGER, DEVICE);
	story[n++] = (struct timeline_event)ACCEPT(us + 1, 1, STRANGER, DEVICE, 0);
	for (int i = 0; i < 6; i++)
		story[n++] = (struct timeline_event)SWITCH(VM, us += 5000, 0, 50 + i, 51 + i, 0);
	reported_of(&t, story, n);
	assert_int_equal(group_find(&t, DEVICE)->handled, 6);
	assert_int_equal(group_find(&t, DEVICE)->lost, 1);
	reported_free(&t);
}

/* The same, but raised by a task that may belong to any VM; the same, but never known whether. */
static void what_may_be_otherwise_is_not_called_lost(void **unused)
{
	struct timeline_event story[COUNT(lost_story) + 2];
	struct reported t;

	(void)unused;
	memcpy(story, lost_story, sizeof(lost_story));
	story[8].event.pid = story[9].event.pid = STRANGER;
	reported_of(&t, story, COUNT(lost_story));
	assert_int_equal(group_find(&t, DEVICE)->lost, 0);
	assert_int_equal(group_find(&t, DEVICE)->late, 1);
	assert_int_equal(chains_trouble(t.chains, 0)->kind, CHAIN_LATE);
	reported_free(&t);

	memcpy(story, lost_story, 10 * sizeof(story[0]));
	story[10] = (struct timeline_event)GAP(HOST, 1020, 0, 3);
	story[11] = (struct timeline_event)GAP(VM, 1030, 0, 3);
	memcpy(story + 12, lost_story + 10, (COUNT(lost_story) - 10) * sizeof(story[0]));
	reported_of(&t, story, COUNT(story));
	assert_int_equal(group_find(&t, DEVICE)->lost, 0);
	reported_free(&t);
}

/* The vCPU is preempted for 20 ms: late, not lost, and the time is where it belongs. */
static void an_interrupt_of_a_preempted_vcpu_is_late(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		EXIT(1000, 0, TID0),
		SWITCH(HOST, 1010, 0, TID0, STRANGER, 0),
		MSI(2000, 1, VHOST, DEVICE),
		ACCEPT(2010, 1, VHOST, DEVICE, 0),
		SWITCH(HOST, 22000, 0, STRANGER, TID0, 0),
		INJECT(22060, 0, TID0, DEVICE),
		ENTRY(22070, 0, TID0),
		HANDLER(22100, 0, IRQ),
		HANDLED(22150, 0, IRQ),
	};
	struct reported t;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	expect_place(&t.closed[0], CHAIN_PLACE_NOT_SCHEDULED, 20000);
	assert_int_equal(group_find(&t, DEVICE)->late, 1);
	assert_int_equal(chains_trouble(t.chains, 0)->kind, CHAIN_LATE);
	assert_null(chains_trouble_in(t.chains, VM, 0, CHAIN_LATE, true, (struct host_ns){0},
				      (struct host_ns){40000000}));
	assert_int_equal(chains_worst(t.chains, 0)->begin.ns, 2000000);
	reported_free(&t);
}

/* Posted interrupts whose handlers the guest does not tell all. */
static const struct timeline_event aggregated_story[] = {
	SWITCH(HOST, 0, 0, 0, TID0, 0),
	ENTRY(10, 0, TID0),
	MSI(1000, 1, VHOST, DEVICE),
	POSTED(1010, 1, VHOST, DEVICE, 0),
	HANDLER(1030, 0, IRQ),
	HANDLED(1150, 0, IRQ),
	EVENT(VM, 1160, 0, SOFTIRQ_ENTRY, 0, 0, 3, 0),
	EVENT(VM, 1170, 0, SOFTIRQ_EXIT, 0, 0, 3, 0),
	MSI(2000, 1, VHOST, DEVICE),
	POSTED(2010, 1, VHOST, DEVICE, 0),
	SWITCH(VM, 5000, 0, 0, 50, 0),
	SWITCH(VM, 9000, 0, 50, 51, 0),
	SWITCH(VM, 15000, 0, 51, 50, 0),
	SWITCH(VM, 21000, 0, 50, 51, 0),
	MSI(30000, 1, VHOST, DEVICE),
	POSTED(30010, 1, VHOST, DEVICE, 0),
	HANDLER(30030, 0, IRQ),
	HANDLED(30150, 0, IRQ),
};

static void what_a_guest_only_counts_is_neither_lost_nor_late(void **unused)
{
	struct reported t;

	(void)unused;
	/* A guest that tells all of them has lost the second. */
	reported_of(&t, aggregated_story, COUNT(aggregated_story));
	assert_int_equal(group_find(&t, DEVICE)->lost, 1);
	expect_stage(&t.closed[0], CHAIN_STAGE_SOFTIRQ_RUN, 10);
	reported_free(&t);
	reported_at(&t, aggregated_story, COUNT(aggregated_story), true);
	assert_null(chains_trouble(t.chains, 0));
	assert_int_equal(group_find(&t, DEVICE)->lost, 0);
	assert_int_equal(group_find(&t, DEVICE)->late, 0);
	assert_int_equal(group_find(&t, DEVICE)->torn, 1);
	assert_int_equal(group_find(&t, DEVICE)->handled, 2);
	assert_int_equal(t.n, 2);
	for (size_t i = 0; i < t.n; i++) {
		expect_stage(&t.closed[i], CHAIN_STAGE_LATENCY, 30);
		expect_unobserved(&t.closed[i], CHAIN_STAGE_SOFTIRQ_RUN);
	}
	reported_free(&t);
	/* What KVM injects shows that it came, whatever the guest tells. */
	reported_at(&t, lost_story, COUNT(lost_story), true);
	assert_int_equal(group_find(&t, DEVICE)->lost, 1);
	reported_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gap_tears_the_open_chain),
		cmocka_unit_test(an_interrupt_that_nobody_delivers_is_lost),
		cmocka_unit_test(an_interrupt_that_others_overtake_is_lost),
		cmocka_unit_test(an_interrupt_that_must_wait_for_others_is_late),
		cmocka_unit_test(who_raised_the_guests_own_before_raises_its_own),
		cmocka_unit_test(what_may_be_otherwise_is_not_called_lost),
		cmocka_unit_test(an_interrupt_of_a_preempted_vcpu_is_late),
		cmocka_unit_test(what_a_guest_only_counts_is_neither_lost_nor_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
