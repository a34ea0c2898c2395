/* SPDX-License-Identifier: GPL-2.0-only */
/* Interrupt chains: told in stories of which every stage is known. */
#include <stdlib.h>

#include "host-collector/analyze/chain.h"
#include "tests/unit/model_script.h"

enum { VHOST = 700, STRANGER = 800, DEVICE = 0x22, TICK = 0xec, RESCHEDULE = 0xfd, IRQ = 25 };

#define MSI(T, CPU, PID, VECTOR)     EVENT(HOST, T, CPU, KVM_MSI, PID, 0, 0, VECTOR)
#define IPI(T, CPU, PID, VECTOR, TO) EVENT(HOST, T, CPU, KVM_IPI, PID, 0, VECTOR, TO)
#define GSI(T, CPU, PID, PIN)        EVENT(HOST, T, CPU, KVM_SET_IRQ, PID, 0, (PIN) | 1ull << 32, 0)
#define ACCEPT(T, CPU, PID, VECTOR, APIC)                                                          \
	EVENT(HOST, T, CPU, KVM_ACCEPT_IRQ, PID, 0, (VECTOR) | (uint64_t)(APIC) << 32, 0)
#define POSTED(T, CPU, PID, VECTOR, APIC)                                                          \
	EVENT(HOST, T, CPU, KVM_APICV_ACCEPT_IRQ, PID, 0, (VECTOR) | (uint64_t)(APIC) << 32, 0)
#define INJECT(T, CPU, TID, VECTOR) EVENT(HOST, T, CPU, KVM_INJECT, TID, 0, VECTOR, 0)
#define EOI(T, CPU, TID, VECTOR)    EVENT(HOST, T, CPU, KVM_EOI, TID, 0, 0, VECTOR)
#define ENTRY(T, CPU, TID)          KVM(T, CPU, ENTRY, TID, 0)
#define EXIT(T, CPU, TID)           KVM(T, CPU, EXIT, TID, 0x200000078)
#define HANDLER(T, CPU, NUMBER)     EVENT(VM, T, CPU, IRQ_ENTRY, 0, 0, NUMBER, 0)
#define HANDLED(T, CPU, NUMBER)     EVENT(VM, T, CPU, IRQ_EXIT, 0, 0, NUMBER, 0)
#define VECTOR(T, CPU, NUMBER)      EVENT(VM, T, CPU, VECTOR_ENTRY, 0, 0, 1, NUMBER)
#define VECTOR_DONE(T, CPU, NUMBER) EVENT(VM, T, CPU, VECTOR_EXIT, 0, 0, 1, NUMBER)
#define LEVEL_ACCEPT(T, CPU, PID, VECTOR, APIC)                                                    \
	EVENT(HOST, T, CPU, KVM_ACCEPT_IRQ, PID, 0, (VECTOR) | (uint64_t)(APIC) << 32, 1ull << 32)
#define ACK(T, CPU, TID, PIN)  EVENT(HOST, T, CPU, KVM_ACK_IRQ, TID, 0, 2, PIN)
#define GAP(SOURCE, T, CPU, N) EVENT(SOURCE, T, CPU, LOST, 0, 0, N, 0)

struct told {
	struct model *model;
	struct chains *chains;
	size_t n;
	struct chain closed[64];
};

static void closed_take(void *context, const struct chain *c)
{
	struct told *t = context;

	assert_true(t->n < COUNT(t->closed));
	t->closed[t->n++] = *c;
}

static void told_of(struct told *t, const struct timeline_event *events, size_t n)
{
	struct chain_options options = {.closed = closed_take, .context = t};
	struct timeline_event name = NAME(HOST, 0, VHOST, 2, 0);

	memset(t, 0, sizeof(*t));
	t->model = model_new();
	assert_non_null(t->model);
	t->chains = chains_new(t->model, &options);
	assert_non_null(t->chains);
	script_vm(t->model, 2, "kvm");
	memcpy(&name.event.arg0, "vhost-10", 8);
	memcpy(&name.event.arg1, "0", 1);
	script_run(t->model, &name, 1);
	script_run(t->model, events, n);
	model_finish(t->model);
	chains_finish(t->chains);
	assert_int_equal(chains_error(t->chains), 0);
}

static void told_free(struct told *t)
{
	chains_free(t->chains);
	model_free(t->model);
}

static const struct chain_group *group_find(const struct told *t, uint8_t vector)
{
	const struct chain_group *g;

	for (size_t i = 0; (g = chains_group(t->chains, i)); i++) {
		if (g->vector == vector)
			return g;
	}
	fail_msg("no chain of vector %#x", vector);
	return NULL;
}

static void expect_stage(const struct chain *c, enum chain_stage stage, int64_t us)
{
	int64_t ns;

	if (!chain_stage_ns(c, stage, &ns))
		fail_msg("%s is not observed", chain_stage_name(stage));
	if (ns != us * 1000)
		fail_msg("%s is %lld ns, not %lld us", chain_stage_name(stage), (long long)ns,
			 (long long)us);
}

static void expect_unobserved(const struct chain *c, enum chain_stage stage)
{
	int64_t ns;

	assert_false(chain_stage_ns(c, stage, &ns));
}

static void expect_place(const struct chain *c, enum chain_place place, int64_t us)
{
	if (c->place_ns[place] != us * 1000)
		fail_msg("%s is %lld ns, not %lld us", chain_place_name(place),
			 (long long)c->place_ns[place], (long long)us);
}

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
	struct told t;
	const struct chain *c = &t.closed[0];

	(void)unused;
	told_of(&t, story, COUNT(story));
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
	told_free(&t);
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
	struct told t;
	const struct chain *c = &t.closed[0];

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	assert_int_equal(c->source, CHAIN_SOURCE_TIMER);
	expect_stage(c, CHAIN_STAGE_LATENCY, 140);
	expect_stage(c, CHAIN_STAGE_SCHEDULE, 50);
	expect_stage(c, CHAIN_STAGE_WAIT, 20);
	expect_unobserved(c, CHAIN_STAGE_RAISE);
	expect_unobserved(c, CHAIN_STAGE_WAKE);
	expect_unobserved(c, CHAIN_STAGE_SOFTIRQ_RUN);
	expect_unobserved(c, CHAIN_STAGE_SERVICE);
	told_free(&t);
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
	struct told t;
	const struct chain *c = &t.closed[0];

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	assert_int_equal(c->vcpu, 1);
	assert_int_equal(c->source, CHAIN_SOURCE_IPI);
	assert_int_equal(c->coalesced, 2);
	expect_stage(c, CHAIN_STAGE_LATENCY, 5060);
	expect_place(c, CHAIN_PLACE_INTERRUPTS_OFF, 5000);
	expect_place(c, CHAIN_PLACE_DELIVERY, 20 + 10);
	expect_place(c, CHAIN_PLACE_EXIT_HANDLING, 30);
	assert_int_equal(group_find(&t, RESCHEDULE)->coalesced, 2);
	told_free(&t);
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
	struct told t;

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 3);
	assert_int_equal(group_find(&t, DEVICE)->handled, 2);
	assert_int_equal(group_find(&t, DEVICE)->posted, 2);
	assert_int_equal(group_find(&t, DEVICE)->coalesced, 0);
	assert_int_equal(group_find(&t, DEVICE)->irq, IRQ);
	assert_int_equal(group_find(&t, 0x23)->irq, IRQ + 1);
	told_free(&t);
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
	struct told t;

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	assert_int_equal(t.closed[0].source, CHAIN_SOURCE_GSI);
	assert_int_equal(t.closed[0].gsi, 4);
	expect_stage(&t.closed[0], CHAIN_STAGE_WAIT, 10);
	expect_stage(&t.closed[0], CHAIN_STAGE_SERVICE, 90);
	expect_unobserved(&t.closed[0], CHAIN_STAGE_LATENCY);
	expect_unobserved(&t.closed[0], CHAIN_STAGE_HANDLE);
	assert_int_equal(group_find(&t, DEVICE)->half, 1);
	told_free(&t);
}

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
	struct told t;

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 2);
	expect_stage(&t.closed[1], CHAIN_STAGE_LATENCY, 30);
	assert_int_equal(t.closed[1].coalesced, 0);
	assert_int_equal(group_find(&t, TICK)->torn, 1);
	told_free(&t);
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
	struct told t;

	(void)unused;
	told_of(&t, lost_story, COUNT(lost_story));
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
	told_free(&t);
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
	struct told t;

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
	told_of(&t, story, n);
	assert_int_equal(group_find(&t, DEVICE)->lost, 1);
	assert_int_equal(group_find(&t, TICK)->lost, 0);
	told_free(&t);
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
	struct told t;

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
	told_of(&t, story, n);
	assert_int_equal(group_find(&t, DEVICE)->handled, 1);
	assert_int_equal(group_find(&t, DEVICE)->lost, 0);
	assert_int_equal(group_find(&t, DEVICE)->late, 1);
	told_free(&t);
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
	struct told t;

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
	told_of(&t, story, n);
	assert_int_equal(group_find(&t, DEVICE)->handled, 6);
	assert_int_equal(group_find(&t, DEVICE)->lost, 1);
	told_free(&t);
}

/* The same, but raised by a task that may belong to any VM; the same, but never known whether. */
static void what_may_be_otherwise_is_not_called_lost(void **unused)
{
	struct timeline_event story[COUNT(lost_story) + 2];
	struct told t;

	(void)unused;
	memcpy(story, lost_story, sizeof(lost_story));
	story[8].event.pid = story[9].event.pid = STRANGER;
	told_of(&t, story, COUNT(lost_story));
	assert_int_equal(group_find(&t, DEVICE)->lost, 0);
	assert_int_equal(group_find(&t, DEVICE)->late, 1);
	assert_int_equal(chains_trouble(t.chains, 0)->kind, CHAIN_LATE);
	told_free(&t);

	memcpy(story, lost_story, 10 * sizeof(story[0]));
	story[10] = (struct timeline_event)GAP(HOST, 1020, 0, 3);
	story[11] = (struct timeline_event)GAP(VM, 1030, 0, 3);
	memcpy(story + 12, lost_story + 10, (COUNT(lost_story) - 10) * sizeof(story[0]));
	told_of(&t, story, COUNT(story));
	assert_int_equal(group_find(&t, DEVICE)->lost, 0);
	told_free(&t);
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
	struct told t;

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	expect_place(&t.closed[0], CHAIN_PLACE_NOT_SCHEDULED, 20000);
	assert_int_equal(group_find(&t, DEVICE)->late, 1);
	assert_int_equal(chains_trouble(t.chains, 0)->kind, CHAIN_LATE);
	assert_null(chains_trouble_in(t.chains, VM, 0, CHAIN_LATE, true, (struct host_ns){0},
				      (struct host_ns){40000000}));
	assert_int_equal(chains_worst(t.chains, 0)->begin.ns, 2000000);
	told_free(&t);
}

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
	struct told t;

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	expect_stage(&t.closed[0], CHAIN_STAGE_SCHEDULE, 70);
	assert_int_equal(group_find(&t, TICK)->negative, 0);
	told_free(&t);
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
	struct told t;
	int64_t ns;

	(void)unused;
	story[3].err_ns = story[5].err_ns = 50000;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	assert_true(chain_stage_ns(&t.closed[0], CHAIN_STAGE_LATENCY, &ns));
	assert_int_equal(ns, -5000);
	assert_true(chain_saw(&t.closed[0], CHAIN_INJECT));
	assert_int_equal(group_find(&t, TICK)->negative, 2);
	assert_int_equal(group_find(&t, TICK)->beyond, 0);
	assert_int_equal(chains_handlers_alone(t.chains), 0);
	told_free(&t);
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
	struct told t;

	(void)unused;
	for (size_t i = 0; i < COUNT(story); i++)
		story[i].err_ns = story[i].source == VM ? 50000 : 5000;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 1);
	assert_int_equal(t.closed[0].source, CHAIN_SOURCE_MSI);
	assert_int_equal(t.closed[0].irq, IRQ);
	expect_stage(&t.closed[0], CHAIN_STAGE_LATENCY, -4);
	assert_int_equal(group_find(&t, DEVICE)->handled, 1);
	assert_int_equal(group_find(&t, DEVICE)->beyond, 0);
	assert_int_equal(chains_handlers_alone(t.chains), 0);
	told_free(&t);
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
	struct told t;

	(void)unused;
	for (size_t i = 0; i < COUNT(story); i++)
		story[i].err_ns = story[i].source == VM ? 50000 : 0;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 2);
	assert_int_equal(t.closed[0].coalesced, 1);
	expect_stage(&t.closed[0], CHAIN_STAGE_LATENCY, 4900);
	assert_int_equal(t.closed[1].coalesced, 0);
	expect_stage(&t.closed[1], CHAIN_STAGE_LATENCY, 19);
	told_free(&t);
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
	struct told t;

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(group_find(&t, TICK)->handled, 1);
	assert_int_equal(group_find(&t, TICK)->torn, 0);
	assert_int_equal(chains_handlers_alone(t.chains), 0);
	told_free(&t);
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
	struct told t;

	(void)unused;
	for (size_t i = 0; i < COUNT(story); i++)
		story[i].err_ns = story[i].source == VM ? 50000 : 0;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 2);
	g = group_find(&t, DEVICE);
	assert_int_equal(g->handled, 2);
	assert_int_equal(g->posted, 2);
	assert_int_equal(g->lost + g->late + g->torn, 0);
	assert_int_equal(chains_handlers_alone(t.chains), 0);
	told_free(&t);
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
	struct told t;

	(void)unused;
	for (size_t i = 0; i < COUNT(story); i++)
		story[i].err_ns = story[i].source == VM ? 50000 : 0;
	told_of(&t, story, COUNT(story));
	assert_int_equal(group_find(&t, TICK)->handled, 1);
	assert_int_equal(group_find(&t, TICK)->late, 0);
	told_free(&t);
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
	struct told t;

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(group_find(&t, TICK)->handled, 2);
	assert_int_equal(group_find(&t, TICK)->torn, 0);
	assert_int_equal(chains_handlers_alone(t.chains), 0);
	expect_place(&t.closed[1], CHAIN_PLACE_DELIVERY, 50007);
	told_free(&t);
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
	struct told t;

	(void)unused;
	told_of(&t, story, COUNT(story));
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
	told_free(&t);
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
	struct told t;

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 2);
	assert_int_equal(group_find(&t, RESCHEDULE)->source, CHAIN_SOURCE_IPI);
	assert_int_equal(group_find(&t, DEVICE)->source, CHAIN_SOURCE_GSI);
	told_free(&t);
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
	struct told t;

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 2);
	assert_int_equal(t.closed[0].source,
			 t.closed[0].vcpu ? CHAIN_SOURCE_TIMER : CHAIN_SOURCE_IPI);
	assert_int_equal(t.closed[1].source,
			 t.closed[1].vcpu ? CHAIN_SOURCE_TIMER : CHAIN_SOURCE_IPI);
	assert_int_not_equal(t.closed[0].vcpu, t.closed[1].vcpu);
	told_free(&t);
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
	struct told t;

	(void)unused;
	told_of(&t, story, COUNT(story));
	assert_int_equal(t.n, 2);
	for (size_t i = 0; i < t.n; i++)
		assert_int_equal(t.closed[i].source,
				 t.closed[i].vcpu ? CHAIN_SOURCE_TIMER : CHAIN_SOURCE_IPI);
	told_free(&t);
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
	struct told t;
	const struct chain_group *g;
	uint64_t ignored = 0, moved = 0;

	(void)unused;
	told_of(&t, story, COUNT(story));
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
	told_free(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_msi_wakes_a_vcpu_and_every_stage_is_known),
		cmocka_unit_test(a_timer_begins_at_the_wakeup_that_its_expiry_was),
		cmocka_unit_test(interrupts_off_and_coalesced_accepts),
		cmocka_unit_test(a_posted_interrupt_needs_no_injection),
		cmocka_unit_test(without_a_guest_the_host_half_reports),
		cmocka_unit_test(a_gap_tears_the_open_chain),
		cmocka_unit_test(an_interrupt_that_nobody_delivers_is_lost),
		cmocka_unit_test(an_interrupt_that_others_overtake_is_lost),
		cmocka_unit_test(who_raised_the_guests_own_before_raises_its_own),
		cmocka_unit_test(an_interrupt_that_must_wait_for_others_is_late),
		cmocka_unit_test(what_may_be_otherwise_is_not_called_lost),
		cmocka_unit_test(an_interrupt_of_a_preempted_vcpu_is_late),
		cmocka_unit_test(a_wakeup_comes_before_the_pcpu_that_it_got),
		cmocka_unit_test(a_handler_may_seem_to_precede_its_injection),
		cmocka_unit_test(an_accept_may_seem_to_follow_its_injection),
		cmocka_unit_test(what_coalesced_may_seem_to_follow_the_handler),
		cmocka_unit_test(a_line_that_is_still_up_comes_again),
		cmocka_unit_test(a_raiser_may_be_slow),
		cmocka_unit_test(an_entry_ends_what_was_raised),
		cmocka_unit_test(an_ipi_to_another_is_not_the_senders_timer),
		cmocka_unit_test(an_end_that_is_told_late_is_not_this_ones),
		cmocka_unit_test(posted_interrupts_may_seem_to_follow_their_handlers),
		cmocka_unit_test(a_handler_is_not_given_to_an_interrupt_that_is_over),
		cmocka_unit_test(a_machine_that_stands_still_tears_nothing),
		cmocka_unit_test(an_irq_moves_and_one_is_not_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
