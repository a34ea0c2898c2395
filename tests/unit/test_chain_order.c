// SPDX-License-Identifier: GPL-2.0-only
/* Tests interrupt chains whose events have another order by their stamps than in reality, within
 * the clocks' error. */
#include "tests/unit/chain_script.h"

/* With the interrupt pending the vCPU is preempted, and then sleeps in an exit: what it waited for
 * a pCPU after its wake-up is the second wait. */
static void a_wakeup_comes_before_the_pcpu_that_it_got(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		EXIT(1000, 0, TID0),
		ACCEPT(1010, 0, TID0, TICK, 0),
		SWITCH(HOST, 1020, 0, TID0, STRANGER, 0),
		SWITCH(HOST, 1500, 0, STRANGER, TID0, 0),
		SWITCH(HOST, 1510, 0, TID0, 0, 1),
		WAKEUP(HOST, 2000, 1, TID0, VHOST, 0),
		SWITCH(HOST, 2070, 0, 0, TID0, 0),
		INJECT(2080, 0, TID0, TICK),
		ENTRY(2090, 0, TID0),
		VECTOR(2100, 0, TICK),
		VECTOR_DONE(2110, 0, TICK),
	};
	struct reported t;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	expect_stage(&t.closed[0], CHAIN_STAGE_SCHEDULE, 70);
	assert_int_equal(group_find(&t, TICK)->negative, 0);
	reported_free(&t);
}

/* The clocks may be 50 us wrong: the handler may seem to come first. */
static void a_handler_may_seem_to_precede_its_injection(void **unused)
{
	struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		EXIT(100, 0, TID0),
		VECTOR(105, 0, TICK),
		ACCEPT(110, 0, TID0, TICK, 0),
		VECTOR_DONE(115, 0, TICK),
		INJECT(120, 0, TID0, TICK),
		ENTRY(130, 0, TID0),
	};
	struct reported t;
	int64_t ns;

	(void)unused;
	story[3].err_ns = story[5].err_ns = 50000;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	assert_true(chain_stage_ns(&t.closed[0], CHAIN_STAGE_LATENCY, &ns));
	assert_int_equal(ns, -5000);
	assert_true(chain_saw(&t.closed[0], CHAIN_INJECT));
	assert_int_equal(group_find(&t, TICK)->negative, 2);
	assert_int_equal(group_find(&t, TICK)->beyond, 0);
	assert_int_equal(chains_handlers_alone(t.chains), 0);
	reported_free(&t);
}

/* So may another CPU's accept, which led to it. */
static void an_accept_may_seem_to_follow_its_injection(void **unused)
{
	struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		EXIT(100, 0, TID0),
		HANDLER(105, 0, IRQ),
		HANDLED(108, 0, IRQ),
		MSI(109, 1, VHOST, DEVICE),
		INJECT(110, 0, TID0, DEVICE),
		ACCEPT(112, 1, VHOST, DEVICE, 0),
		ENTRY(120, 0, TID0),
	};
	struct reported t;

	(void)unused;
	reported_unsure(&t, story, COUNT(story), 5000, 50000);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.closed[0].source, CHAIN_SOURCE_MSI);
	assert_int_equal(t.closed[0].irq, IRQ);
	expect_stage(&t.closed[0], CHAIN_STAGE_LATENCY, -4);
	assert_int_equal(group_find(&t, DEVICE)->handled, 1);
	assert_int_equal(group_find(&t, DEVICE)->beyond, 0);
	assert_int_equal(chains_handlers_alone(t.chains), 0);
	reported_free(&t);
}

/* A second accept just before the injection, but after the handler, by the clocks: it begins none.
 */
static void what_coalesced_may_seem_to_follow_the_handler(void **unused)
{
	struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		MSI(100, 1, VHOST, DEVICE),
		ACCEPT(101, 1, VHOST, DEVICE, 0),
		HANDLER(5000, 0, IRQ),
		HANDLED(5005, 0, IRQ),
		EXIT(5008, 0, TID0),
		MSI(5009, 1, VHOST, DEVICE),
		ACCEPT(5010, 1, VHOST, DEVICE, 0),
		INJECT(5020, 0, TID0, DEVICE),
		ENTRY(5030, 0, TID0),
		EXIT(9000, 0, TID0),
		MSI(9001, 1, VHOST, DEVICE),
		ACCEPT(9002, 1, VHOST, DEVICE, 0),
		INJECT(9010, 0, TID0, DEVICE),
		ENTRY(9011, 0, TID0),
		HANDLER(9020, 0, IRQ),
		HANDLED(9025, 0, IRQ),
	};
	struct reported t;

	(void)unused;
	reported_unsure(&t, story, COUNT(story), 0, 50000);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.closed[0].coalesced, 1);
	expect_stage(&t.closed[0], CHAIN_STAGE_LATENCY, 4900);
	assert_int_equal(t.closed[1].coalesced, 0);
	expect_stage(&t.closed[1], CHAIN_STAGE_LATENCY, 19);
	reported_free(&t);
}

/* As KVM learns of the end of the interrupt before only after it has injected this one. */
static void an_end_that_is_told_late_is_not_this_ones(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		EXIT(100, 0, TID0),
		ACCEPT(101, 0, TID0, TICK, 0),
		INJECT(102, 0, TID0, TICK),
		ENTRY(103, 0, TID0),
		EXIT(110, 0, TID0),
		EOI(111, 0, TID0, TICK),
		ENTRY(112, 0, TID0),
		VECTOR(120, 0, TICK),
		VECTOR_DONE(125, 0, TICK),
	};
	struct reported t;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(group_find(&t, TICK)->handled, 1);
	assert_int_equal(group_find(&t, TICK)->torn, 0);
	assert_int_equal(chains_handlers_alone(t.chains), 0);
	reported_free(&t);
}

/* The same of a device's, posted, before anything has taught which vector its irq has: each handler
 * goes to its own accept, the second tracepoint of which begins nothing. */
static void posted_interrupts_may_seem_to_follow_their_handlers(void **unused)
{
	struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		HANDLER(990, 0, IRQ),
		HANDLED(995, 0, IRQ),
		MSI(1000, 1, VHOST, DEVICE),
		ACCEPT(1001, 1, VHOST, DEVICE, 0),
		POSTED(1002, 1, VHOST, DEVICE, 0),
		SWITCH(VM, 5000, 0, 0, 42, 0),
		SWITCH(VM, 6000, 0, 42, 0, 1),
		HANDLER(50990, 0, IRQ),
		HANDLED(50995, 0, IRQ),
		MSI(51000, 1, VHOST, DEVICE),
		ACCEPT(51001, 1, VHOST, DEVICE, 0),
		POSTED(51002, 1, VHOST, DEVICE, 0),
		SWITCH(VM, 55000, 0, 0, 42, 0),
		SWITCH(VM, 56000, 0, 42, 0, 1),
	};
	const struct chain_group *g;
	struct reported t;

	(void)unused;
	reported_unsure(&t, story, COUNT(story), 0, 50000);
	assert_int_equal(t.n, 2);
	g = group_find(&t, DEVICE);
	assert_int_equal(g->handled, 2);
	assert_int_equal(g->posted, 2);
	assert_int_equal(g->lost + g->late + g->torn, 0);
	assert_int_equal(chains_handlers_alone(t.chains), 0);
	reported_free(&t);
}

/* The first handler was not seen; the second one's stamp precedes its own accept and injection, but
 * the guest has gone on since the first injection, so it is not that one's. */
static void a_handler_is_not_given_to_an_interrupt_that_is_over(void **unused)
{
	struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		EXIT(1000, 0, TID0),
		ACCEPT(1001, 0, TID0, TICK, 0),
		INJECT(1002, 0, TID0, TICK),
		ENTRY(1003, 0, TID0),
		SWITCH(VM, 3000, 0, 0, 42, 0),
		VECTOR(50990, 0, TICK),
		VECTOR_DONE(50995, 0, TICK),
		EXIT(51000, 0, TID0),
		ACCEPT(51001, 0, TID0, TICK, 0),
		INJECT(51002, 0, TID0, TICK),
		ENTRY(51003, 0, TID0),
	};
	struct reported t;

	(void)unused;
	reported_unsure(&t, story, COUNT(story), 0, 50000);
	assert_int_equal(group_find(&t, TICK)->handled, 1);
	assert_int_equal(group_find(&t, TICK)->late, 0);
	reported_free(&t);
}

/* The host is a guest itself and stood still between an injection and its handler: nothing says so.
 */
static void a_machine_that_stands_still_tears_nothing(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0), ENTRY(10, 0, TID0),          EXIT(1000, 0, TID0),
		ACCEPT(1001, 0, TID0, TICK, 0), INJECT(1002, 0, TID0, TICK), ENTRY(1003, 0, TID0),
		VECTOR(1010, 0, TICK),          VECTOR_DONE(1015, 0, TICK),  EXIT(2000, 0, TID0),
		ACCEPT(2001, 0, TID0, TICK, 0), INJECT(2002, 0, TID0, TICK), ENTRY(2003, 0, TID0),
		VECTOR(52010, 0, TICK),         VECTOR_DONE(52015, 0, TICK),
	};
	struct reported t;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(group_find(&t, TICK)->handled, 2);
	assert_int_equal(group_find(&t, TICK)->torn, 0);
	assert_int_equal(chains_handlers_alone(t.chains), 0);
	expect_place(&t.closed[1], CHAIN_PLACE_DELIVERY, 50007);
	reported_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wakeup_comes_before_the_pcpu_that_it_got),
		cmocka_unit_test(a_handler_may_seem_to_precede_its_injection),
		cmocka_unit_test(an_accept_may_seem_to_follow_its_injection),
		cmocka_unit_test(what_coalesced_may_seem_to_follow_the_handler),
		cmocka_unit_test(an_end_that_is_told_late_is_not_this_ones),
		cmocka_unit_test(posted_interrupts_may_seem_to_follow_their_handlers),
		cmocka_unit_test(a_handler_is_not_given_to_an_interrupt_that_is_over),
		cmocka_unit_test(a_machine_that_stands_still_tears_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
