// SPDX-License-Identifier: GPL-2.0-only
/* Tests interrupt chains: each source, each stage, and each place of the latency. */
#include "host-collector/analyze/chain/chain_internal.h"
#include "tests/unit/chain_script.h"

/* A vhost worker raises an MSI at a sleeping vCPU, whose pCPU another holds for 3 ms. */
static void an_msi_wakes_a_vcpu_and_every_stage_is_known(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		EXIT(1000, 0, TID0),
		SWITCH(HOST, 1010, 0, TID0, STRANGER, 1),
		MSI(2000, 1, VHOST, DEVICE),
		ACCEPT(2010, 1, VHOST, DEVICE, 0),
		WAKEUP(HOST, 2040, 1, TID0, VHOST, 0),
		SWITCH(HOST, 5040, 0, STRANGER, TID0, 0),
		INJECT(5060, 0, TID0, DEVICE),
		ENTRY(5070, 0, TID0),
		HANDLER(5100, 0, IRQ),
		HANDLED(5150, 0, IRQ),
		IRQ(5160, 0, SOFTIRQ_ENTRY, 0, 3),
		IRQ(5200, 0, SOFTIRQ_EXIT, 0, 3),
		EXIT(5300, 0, TID0),
		EOI(5310, 0, TID0, DEVICE),
	};
	struct reported t;
	const struct chain *c = &t.closed[0];

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	assert_int_equal(c->source, CHAIN_SOURCE_MSI);
	assert_int_equal(c->vector, DEVICE);
	assert_int_equal(c->irq, IRQ);
	assert_int_equal(c->softirq, 3);
	assert_true(c->certain);
	expect_stage(c, CHAIN_STAGE_LATENCY, 3100);
	expect_stage(c, CHAIN_STAGE_RAISE, 10);
	expect_stage(c, CHAIN_STAGE_WAKE, 30);
	expect_stage(c, CHAIN_STAGE_SCHEDULE, 3000);
	expect_stage(c, CHAIN_STAGE_WAIT, 3050);
	expect_stage(c, CHAIN_STAGE_ENTER, 10);
	expect_stage(c, CHAIN_STAGE_DELIVER, 30);
	expect_stage(c, CHAIN_STAGE_HANDLE, 50);
	expect_stage(c, CHAIN_STAGE_SOFTIRQ_WAIT, 10);
	expect_stage(c, CHAIN_STAGE_SOFTIRQ_RUN, 40);
	expect_stage(c, CHAIN_STAGE_SERVICE, 250);
	expect_place(c, CHAIN_PLACE_ASLEEP, 40);
	expect_place(c, CHAIN_PLACE_NOT_SCHEDULED, 3000);
	expect_place(c, CHAIN_PLACE_EXIT_HANDLING, 30);
	expect_place(c, CHAIN_PLACE_DELIVERY, 30);
	expect_place(c, CHAIN_PLACE_INTERRUPTS_OFF, 0);
	assert_int_equal(group_find(&t, DEVICE)->handled, 1);
	reported_free(&t);
}

/* The timer of a halted vCPU wakes it; the vCPU itself then finds the interrupt. */
static void a_timer_begins_at_the_wakeup_that_its_expiry_was(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		EXIT(1000, 0, TID0),
		SWITCH(HOST, 1010, 0, TID0, 0, 1),
		WAKEUP(HOST, 4000, 0, TID0, 0, 0),
		SWITCH(HOST, 4050, 0, 0, TID0, 0),
		ACCEPT(4060, 0, TID0, TICK, 0),
		INJECT(4080, 0, TID0, TICK),
		ENTRY(4090, 0, TID0),
		VECTOR(4140, 0, TICK),
		VECTOR_DONE(4190, 0, TICK),
	};
	struct reported t;
	const struct chain *c = &t.closed[0];

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	assert_int_equal(c->source, CHAIN_SOURCE_TIMER);
	expect_stage(c, CHAIN_STAGE_LATENCY, 140);
	expect_stage(c, CHAIN_STAGE_SCHEDULE, 50);
	expect_stage(c, CHAIN_STAGE_WAIT, 20);
	expect_unobserved(c, CHAIN_STAGE_RAISE);
	expect_unobserved(c, CHAIN_STAGE_WAKE);
	expect_unobserved(c, CHAIN_STAGE_SOFTIRQ_RUN);
	expect_unobserved(c, CHAIN_STAGE_SERVICE);
	reported_free(&t);
}

/* A running vCPU is kicked out, its guest has interrupts off for 5 ms; two more of the same come
 * meanwhile. An IPI of the other vCPU is no timer. */
static void interrupts_off_and_coalesced_accepts(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		SWITCH(HOST, 1, 1, 0, TID1, 0),
		ENTRY(10, 0, TID0),
		ENTRY(11, 1, TID1),
		EXIT(100, 0, TID0),
		IPI(110, 0, TID0, RESCHEDULE, 1),
		ACCEPT(112, 0, TID0, RESCHEDULE, 1),
		ENTRY(120, 0, TID0),
		EXIT(130, 1, TID1),
		ENTRY(140, 1, TID1),
		EXIT(200, 0, TID0),
		IPI(210, 0, TID0, RESCHEDULE, 1),
		ACCEPT(212, 0, TID0, RESCHEDULE, 1),
		ACCEPT(213, 0, TID0, RESCHEDULE, 1),
		ENTRY(220, 0, TID0),
		EXIT(5140, 1, TID1),
		INJECT(5150, 1, TID1, RESCHEDULE),
		ENTRY(5160, 1, TID1),
		VECTOR(5170, 1, RESCHEDULE),
		VECTOR_DONE(5180, 1, RESCHEDULE),
	};
	struct reported t;
	const struct chain *c = &t.closed[0];

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	assert_int_equal(c->vcpu, 1);
	assert_int_equal(c->source, CHAIN_SOURCE_IPI);
	assert_int_equal(c->coalesced, 2);
	expect_stage(c, CHAIN_STAGE_LATENCY, 5060);
	expect_place(c, CHAIN_PLACE_INTERRUPTS_OFF, 5000);
	expect_place(c, CHAIN_PLACE_DELIVERY, 20 + 10);
	expect_place(c, CHAIN_PLACE_EXIT_HANDLING, 30);
	assert_int_equal(group_find(&t, RESCHEDULE)->coalesced, 2);
	reported_free(&t);
}

/* Posted: no exit, no injection; which irq it is, is known from one that came alone. */
static void a_posted_interrupt_needs_no_injection(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		MSI(100, 1, VHOST, DEVICE),
		ACCEPT(101, 1, VHOST, DEVICE, 0),
		POSTED(102, 1, VHOST, DEVICE, 0),
		HANDLER(110, 0, IRQ),
		HANDLED(120, 0, IRQ),
		MSI(200, 1, VHOST, 0x23),
		ACCEPT(201, 1, VHOST, 0x23, 0),
		POSTED(202, 1, VHOST, 0x23, 0),
		MSI(203, 1, VHOST, DEVICE),
		ACCEPT(204, 1, VHOST, DEVICE, 0),
		POSTED(205, 1, VHOST, DEVICE, 0),
		HANDLER(210, 0, IRQ),
		HANDLED(220, 0, IRQ),
		HANDLER(230, 0, IRQ + 1),
		HANDLED(240, 0, IRQ + 1),
	};
	struct reported t;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 3);
	assert_int_equal(group_find(&t, DEVICE)->handled, 2);
	assert_int_equal(group_find(&t, DEVICE)->posted, 2);
	assert_int_equal(group_find(&t, DEVICE)->coalesced, 0);
	assert_int_equal(group_find(&t, DEVICE)->irq, IRQ);
	assert_int_equal(group_find(&t, 0x23)->irq, IRQ + 1);
	reported_free(&t);
}

/* No agent: the host's half all the same, the guest's stages not observed. */
static void without_a_guest_the_host_half_reports(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		EXIT(100, 0, TID0),
		GSI(105, 0, TID0, 4),
		ACCEPT(110, 0, TID0, DEVICE, 0),
		INJECT(120, 0, TID0, DEVICE),
		ENTRY(130, 0, TID0),
		EXIT(200, 0, TID0),
		EOI(210, 0, TID0, DEVICE),
	};
	struct reported t;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	assert_int_equal(t.closed[0].source, CHAIN_SOURCE_GSI);
	assert_int_equal(t.closed[0].gsi, 4);
	expect_stage(&t.closed[0], CHAIN_STAGE_WAIT, 10);
	expect_stage(&t.closed[0], CHAIN_STAGE_SERVICE, 90);
	expect_unobserved(&t.closed[0], CHAIN_STAGE_LATENCY);
	expect_unobserved(&t.closed[0], CHAIN_STAGE_HANDLE);
	assert_int_equal(group_find(&t, DEVICE)->half, 1);
	reported_free(&t);
}

/* A KVM that has no injection to tell of and ends what the guest takes: its own EOI names no
 * vector. The line is still up then, so the IOAPIC raises it again, with nobody's doing. */
static void a_line_that_is_still_up_comes_again(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		GSI(1000, 1, VHOST, 20),
		LEVEL_ACCEPT(1002, 1, VHOST, DEVICE, 0),
		EOI(1010, 0, TID0, DEVICE),
		ACK(1011, 0, TID0, 20),
		LEVEL_ACCEPT(1012, 0, TID0, DEVICE, 0),
		VECTOR(1020, 0, DEVICE),
		EOI(1030, 0, TID0, -1),
		VECTOR_DONE(1040, 0, DEVICE),
		EOI(1041, 0, TID0, DEVICE),
		ACK(1042, 0, TID0, 20),
		VECTOR(1050, 0, DEVICE),
		EOI(1060, 0, TID0, -1),
		VECTOR_DONE(1070, 0, DEVICE),
		/* Not by what was acknowledged last: a timer is edge-triggered. */
		ACCEPT(1100, 0, TID0, TICK, 0),
		EOI(1101, 0, TID0, TICK),
		VECTOR(1110, 0, TICK),
		VECTOR_DONE(1120, 0, TICK),
	};
	struct reported t;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 3);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(t.closed[i].source, CHAIN_SOURCE_GSI);
		assert_int_equal(t.closed[i].gsi, 20);
		assert_int_equal(t.closed[i].coalesced, 0);
		assert_true(t.closed[i].level);
		expect_stage(&t.closed[i], CHAIN_STAGE_WAIT, i ? 29 : 8);
		expect_stage(&t.closed[i], CHAIN_STAGE_HANDLE, 20);
		expect_stage(&t.closed[i], CHAIN_STAGE_SERVICE, i ? 19 : 20);
	}
	assert_int_equal(t.closed[2].source, CHAIN_SOURCE_TIMER);
	reported_free(&t);
}

/* Who raises may be preempted before the interrupt is accepted. */
static void a_raiser_may_be_slow(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		SWITCH(HOST, 20, 1, 0, TID1, 0),
		IPI(1000, 1, TID1, RESCHEDULE, 0),
		GSI(1010, 0, VHOST, 20),
		ACCEPT(6000, 1, TID1, RESCHEDULE, 0),
		ACCEPT(7000, 0, VHOST, DEVICE, 0),
		EXIT(7100, 0, TID0),
		INJECT(7110, 0, TID0, RESCHEDULE),
		ENTRY(7120, 0, TID0),
		VECTOR(7130, 0, RESCHEDULE),
		VECTOR_DONE(7140, 0, RESCHEDULE),
		EXIT(7150, 0, TID0),
		EOI(7151, 0, TID0, RESCHEDULE),
		INJECT(7160, 0, TID0, DEVICE),
		ENTRY(7170, 0, TID0),
		VECTOR(7180, 0, DEVICE),
		VECTOR_DONE(7190, 0, DEVICE),
	};
	struct reported t;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 2);
	assert_int_equal(group_find(&t, RESCHEDULE)->source, CHAIN_SOURCE_IPI);
	assert_int_equal(group_find(&t, DEVICE)->source, CHAIN_SOURCE_GSI);
	reported_free(&t);
}

/* What a vCPU sent before it entered the guest is not what makes its own timer's interrupt. */
static void an_entry_ends_what_was_raised(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		SWITCH(HOST, 20, 1, 0, TID1, 0),
		ENTRY(30, 1, TID1),
		EXIT(990, 1, TID1),
		IPI(1000, 1, TID1, TICK, 0),
		ACCEPT(1010, 1, TID1, TICK, 0),
		ENTRY(1020, 1, TID1),
		EXIT(1030, 0, TID0),
		INJECT(1040, 0, TID0, TICK),
		ENTRY(1050, 0, TID0),
		VECTOR(1060, 0, TICK),
		VECTOR_DONE(1070, 0, TICK),
		EXIT(1100, 1, TID1),
		ACCEPT(1110, 1, TID1, TICK, 1),
		INJECT(1120, 1, TID1, TICK),
		ENTRY(1130, 1, TID1),
		VECTOR(1140, 1, TICK),
		VECTOR_DONE(1150, 1, TICK),
	};
	struct reported t;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 2);
	assert_int_equal(t.closed[0].source,
			 t.closed[0].vcpu ? CHAIN_SOURCE_TIMER : CHAIN_SOURCE_IPI);
	assert_int_equal(t.closed[1].source,
			 t.closed[1].vcpu ? CHAIN_SOURCE_TIMER : CHAIN_SOURCE_IPI);
	assert_int_not_equal(t.closed[0].vcpu, t.closed[1].vcpu);
	reported_free(&t);
}

/* A KVM that tells of no entries: whom an IPI is for tells that it is not its sender's timer. */
static void an_ipi_to_another_is_not_the_senders_timer(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0), SWITCH(HOST, 10, 1, 0, TID1, 0),
		IPI(1000, 1, TID1, TICK, 0),    ACCEPT(1010, 1, TID1, TICK, 0),
		VECTOR(1060, 0, TICK),          VECTOR_DONE(1070, 0, TICK),
		ACCEPT(1100, 1, TID1, TICK, 1), VECTOR(1140, 1, TICK),
		VECTOR_DONE(1150, 1, TICK),
	};
	struct reported t;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 2);
	for (size_t i = 0; i < t.n; i++)
		assert_int_equal(t.closed[i].source,
				 t.closed[i].vcpu ? CHAIN_SOURCE_TIMER : CHAIN_SOURCE_IPI);
	reported_free(&t);
}

/* The guest moves a device's interrupt to its other CPU and another vector; what was raised for a
 * vector that no APIC took is told, too. */
static void an_irq_moves_and_one_is_not_accepted(void **unused)
{
	static const struct timeline_event story[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		ENTRY(10, 0, TID0),
		SWITCH(HOST, 11, 1, 0, TID1, 0),
		ENTRY(12, 1, TID1),
		MSI(2000, 2, VHOST, DEVICE),
		ACCEPT(2010, 2, VHOST, DEVICE, 0),
		EXIT(2020, 0, TID0),
		INJECT(2030, 0, TID0, DEVICE),
		ENTRY(2040, 0, TID0),
		HANDLER(2050, 0, IRQ),
		HANDLED(2060, 0, IRQ),
		MSI(3000, 2, VHOST, DEVICE),
		MSI(4000, 2, VHOST, DEVICE + 1),
		ACCEPT(4010, 2, VHOST, DEVICE + 1, 1),
		EXIT(4020, 1, TID1),
		INJECT(4030, 1, TID1, DEVICE + 1),
		ENTRY(4040, 1, TID1),
		HANDLER(4050, 1, IRQ),
		HANDLED(4060, 1, IRQ),
	};
	struct reported t;
	const struct chain_group *g;
	uint64_t ignored = 0, moved = 0;

	(void)unused;
	reported_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 2);
	assert_int_equal(group_find(&t, DEVICE + 1)->moved, 1);
	for (size_t i = 0; (g = chains_group(t.chains, i)); i++) {
		ignored += g->ignored;
		moved += g->moved;
		if (g->ignored)
			assert_int_equal(g->vector, DEVICE);
	}
	assert_int_equal(ignored, 1);
	assert_int_equal(moved, 1);
	reported_free(&t);
}

/*
 * Handlers that come late in a running guest, by clocks that may be wrong by 20 us: whose they are
 * is known later, when the vCPU has been elsewhere.
 */
static struct timeline_event late_handlers[] = {
	SWITCH(HOST, 0, 0, 0, TID0, 0),
	ENTRY(10, 0, TID0),
	EXIT(1000, 0, TID0),
	MSI(1010, 1, VHOST, DEVICE),
	ACCEPT(1012, 1, VHOST, DEVICE, 0),
	INJECT(1050, 0, TID0, DEVICE),
	ENTRY(1060, 0, TID0),
	HANDLER(1500, 0, IRQ),
	HANDLED(1510, 0, IRQ),
	EXIT(1512, 0, TID0),
	ENTRY(1900, 0, TID0),
	EXIT(20000, 0, TID0),
	MSI(20010, 1, VHOST, DEVICE),
	/* The raiser is preempted here, and the vCPU moves on. */
	ENTRY(20020, 0, TID0),
	EXIT(20100, 0, TID0),
	ACCEPT(20150, 1, VHOST, DEVICE, 0),
	INJECT(20160, 0, TID0, DEVICE),
	ENTRY(20170, 0, TID0),
	HANDLER(20700, 0, IRQ),
	HANDLED(20710, 0, IRQ),
	EXIT(20712, 0, TID0),
	SWITCH(HOST, 20720, 0, TID0, 0, 1),
	WAKEUP(HOST, 60000, 0, TID0, 0, 0),
	SWITCH(HOST, 60010, 0, 0, TID0, 0),
	ENTRY(60020, 0, TID0),
};

static void where_the_time_went_is_as_of_the_handler(void **unused)
{
	struct reported t;

	(void)unused;
	reported_unsure(&t, late_handlers, COUNT(late_handlers), 1000, 20000);
	assert_int_equal(t.n, 2);
	for (size_t i = 0; i < t.n; i++)
		assert_true(chain_saw(&t.closed[i], CHAIN_HANDLER));
	expect_place(&t.closed[0], CHAIN_PLACE_EXIT_HANDLING, 50);
	expect_place(&t.closed[0], CHAIN_PLACE_DELIVERY, 440);
	expect_place(&t.closed[1], CHAIN_PLACE_EXIT_HANDLING, 10 + 70);
	expect_place(&t.closed[1], CHAIN_PLACE_INTERRUPTS_OFF, 80);
	expect_place(&t.closed[1], CHAIN_PLACE_DELIVERY, 530);
	expect_place(&t.closed[1], CHAIN_PLACE_ASLEEP, 0);
	reported_free(&t);
}

/* Whatever is called late: the same interrupts are joined, and their time went to the same places.
 */
static void the_limit_of_what_is_late_changes_no_chain(void **unused)
{
	static const int64_t limits_ns[] = {1000, 100000, 1000000, 25000000, 1000000000};
	struct reported by_default, t;

	(void)unused;
	reported_unsure(&by_default, late_handlers, COUNT(late_handlers), 1000, 20000);
	for (size_t i = 0; i < COUNT(limits_ns); i++) {
		reported_with(&t, late_handlers, COUNT(late_handlers), false, limits_ns[i]);
		assert_int_equal(t.n, by_default.n);
		for (size_t k = 0; k < t.n; k++) {
			t.closed[k].lost = by_default.closed[k].lost;
			assert_memory_equal(&t.closed[k], &by_default.closed[k],
					    sizeof(t.closed[k]));
		}
		reported_free(&t);
	}
	reported_free(&by_default);
}

/* More moves than are remembered: what lies before them is not known, and nothing is made up. */
static void the_past_is_read_as_far_as_it_is_remembered(void **unused)
{
	static const struct chain_listeners none = {0};
	struct chain_vcpu *v = malloc(sizeof(*v));
	int64_t clock_ns[CHAIN_WHERE_COUNT], all;

	(void)unused;
	assert_non_null(v);
	chain_vcpu_init(v, VM, 0, &none);
	for (int i = 0; i < 200; i++)
		chain_vcpu_moved(v, (struct host_ns){1000 + 10 * i},
				 i % 2 ? CHAIN_IN_EXIT : CHAIN_IN_GUEST);
	/* In the guest from 2980 on, in an exit from 2990 on. */
	chain_clock_read(v, (struct host_ns){3000}, clock_ns);
	assert_int_equal(clock_ns[CHAIN_IN_GUEST], 1000);
	assert_int_equal(clock_ns[CHAIN_IN_EXIT], 1000);
	chain_clock_read(v, (struct host_ns){2985}, clock_ns);
	assert_int_equal(clock_ns[CHAIN_IN_GUEST], 995);
	assert_int_equal(clock_ns[CHAIN_IN_EXIT], 990);
	chain_clock_read(v, (struct host_ns){2500}, clock_ns);
	assert_int_equal(clock_ns[CHAIN_IN_GUEST], 750);
	assert_int_equal(clock_ns[CHAIN_IN_EXIT], 750);
	assert_int_equal(clock_ns[CHAIN_NOWHERE], 1000);
	chain_clock_read(v, (struct host_ns){1500}, clock_ns);
	all = clock_ns[CHAIN_IN_GUEST] + clock_ns[CHAIN_IN_EXIT] + clock_ns[CHAIN_NOWHERE];
	assert_int_equal(all, 1500);
	assert_true(clock_ns[CHAIN_NOWHERE] < 1000);
	free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_msi_wakes_a_vcpu_and_every_stage_is_known),
		cmocka_unit_test(a_timer_begins_at_the_wakeup_that_its_expiry_was),
		cmocka_unit_test(interrupts_off_and_coalesced_accepts),
		cmocka_unit_test(a_posted_interrupt_needs_no_injection),
		cmocka_unit_test(without_a_guest_the_host_half_reports),
		cmocka_unit_test(a_line_that_is_still_up_comes_again),
		cmocka_unit_test(a_raiser_may_be_slow),
		cmocka_unit_test(an_entry_ends_what_was_raised),
		cmocka_unit_test(an_ipi_to_another_is_not_the_senders_timer),
		cmocka_unit_test(an_irq_moves_and_one_is_not_accepted),
		cmocka_unit_test(where_the_time_went_is_as_of_the_handler),
		cmocka_unit_test(the_limit_of_what_is_late_changes_no_chain),
		cmocka_unit_test(the_past_is_read_as_far_as_it_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
