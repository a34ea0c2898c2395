/* SPDX-License-Identifier: GPL-2.0-only */
/* Compares guest events with the times at which their vCPU was in the guest. */
#include "tests/unit/model_script.h"

enum { ERR_US = 5 };

#define IN(T_US)    SWITCH(HOST, T_US, 0, 0, TID0, 0)
#define OUT(T_US)   SWITCH(HOST, T_US, 0, TID0, 0, 1)
#define ENTRY(T_US) KVM(T_US, 0, ENTRY, TID0, 0)
#define EXIT(T_US)  KVM(T_US, 0, EXIT, TID0, 0)
#define TIMER(T_US) IRQ(T_US, 0, VECTOR_ENTRY, 7, VS_VECTOR_LOCAL_TIMER)
#define TASK(T_US)  NAME(VM, T_US, 7, 7, 0)

struct story {
	const char *name;
	size_t n_events;
	struct timeline_event events[10];
	uint64_t pairs, violations;
	int64_t worst_us;
	size_t vcpus;  /* 0: 1 */
	bool stranger; /* the agent tells other APIC ids than the host */
};

#define EVENTS(...)                                                                                \
	.n_events = COUNT(((const struct timeline_event[]){__VA_ARGS__})), .events = {__VA_ARGS__}

static const struct story stories[] = {
	{.name = "between switch-in and switch-out",
	 EVENTS(IN(0), TIMER(50), OUT(100)),
	 .pairs = 1},
	{.name = "off the CPU, farther from either edge than the clock's error",
	 EVENTS(IN(0), OUT(100), TIMER(120), TIMER(150), IN(200)),
	 .pairs = 2,
	 .violations = 2,
	 .worst_us = 45},
	{.name = "off the CPU, but not farther than the error",
	 EVENTS(IN(0), OUT(100), TIMER(104), TIMER(196), IN(200)),
	 .pairs = 2},
	{.name = "before the thread was seen, and while it is away at the end: nothing to hold it against",
	 EVENTS(TIMER(10), IN(20), OUT(100), TIMER(150))},
	{.name = "switches may be missing",
	 EVENTS(IN(0), OUT(100), LOST(HOST, 120, 0), TIMER(150), IN(200), TIMER(210)),
	 .pairs = 1},
	{.name = "left twice: the return in between was missed",
	 EVENTS(IN(0), OUT(100), TIMER(150), OUT(200), IN(300), TIMER(310)),
	 .pairs = 1},
	/* the first entry only says that KVM will speak from now on */
	{.name = "with KVM's events: on the CPU, but outside the guest",
	 EVENTS(IN(0), ENTRY(10), TIMER(20), EXIT(30), TIMER(50), ENTRY(70)),
	 .pairs = 1,
	 .violations = 1,
	 .worst_us = 15},
	{.name = "what the agent says of tasks happened at no such instant",
	 EVENTS(IN(0), OUT(100), TASK(150), IN(200))},
	{.name = "several vCPUs joined by APIC id",
	 EVENTS(IN(0), OUT(100), TIMER(150), IN(200)),
	 .pairs = 1,
	 .violations = 1,
	 .worst_us = 45,
	 .vcpus = 2},
	{.name = "several vCPUs joined by rank prove nothing",
	 EVENTS(IN(0), OUT(100), TIMER(150), IN(200)),
	 .vcpus = 2,
	 .stranger = true},
};

static struct presence_count play(const struct story *s)
{
	struct message_vm_info info = {.vm = VM, .qemu_pid = QEMU, .accelerator = "kvm"};
	struct message_cpu cpus[2];
	struct presence_count count;
	struct model *m = model_new();
	size_t n = s->vcpus ? s->vcpus : 1;

	for (size_t i = 0; i < n; i++) {
		info.threads[info.n_threads++] = (struct message_vm_thread){
			.tid = TID0 + (int)i,
			.is_vcpu = true,
			.vcpu = (uint32_t)i,
			.apic_id_known = true,
			.apic_id = (uint32_t)i,
		};
		cpus[i] = (struct message_cpu){.cpu = (uint32_t)i,
					       .apic_id = (uint32_t)i + (s->stranger ? 8 : 0)};
	}
	assert_int_equal(model_vm(m, &info), 0);
	assert_int_equal(model_guest_cpus(m, VM, cpus, n), 0);
	for (size_t i = 0; i < s->n_events; i++) {
		struct timeline_event e = s->events[i];

		e.err_ns = e.source == VM ? ERR_US * 1000 : 0;
		assert_int_equal(model_push(m, &e, 1), 0);
	}
	model_finish(m);
	count = model_presence(m, VM);
	model_free(m);
	return count;
}

static void presence_is_judged_by_the_vcpus_entries_and_exits(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(stories); i++) {
		const struct story *s = &stories[i];
		struct presence_count c = play(s);

		if (c.pairs != s->pairs || c.violations != s->violations ||
		    c.worst_ns != s->worst_us * 1000)
			fail_msg("%s: %llu pairs, %llu violations, worst %lld ns", s->name,
				 (unsigned long long)c.pairs, (unsigned long long)c.violations,
				 (long long)c.worst_ns);
	}
}

static void a_flood_while_away_is_bounded(void **state)
{
	struct presence_count c = {0};
	struct presence p = {0};

	(void)state;
	presence_left(&p, (struct host_ns){1000}, 0);
	for (int i = 0; i < 1000; i++)
		presence_event(&p, (struct host_ns){2000 + i}, 0, &c);
	presence_back(&p, (struct host_ns){9000}, 0, &c);
	assert_int_equal(c.violations, PRESENCE_WAITING);
	assert_int_equal(c.pairs, PRESENCE_WAITING);
}

/* One return that the host missed explains all events of a moment; many moments are no accident. */
static void a_clock_is_refuted_by_many_moments_not_by_many_events(void **state)
{
	const int64_t piece_ns = PRESENCE_PIECE_NS;
	struct presence_count c = {0};
	struct presence p = {0};

	(void)state;
	for (int64_t moment = 1; moment <= AUDIT_REFUTES; moment++) {
		const int64_t t = moment * 10 * piece_ns;

		assert_false(audit_refutes(&c.recent));
		presence_left(&p, (struct host_ns){t}, 0);
		for (int i = 0; i < 50; i++)
			presence_event(&p, (struct host_ns){t + 1000 + i * 1000}, 0, &c);
		presence_back(&p, (struct host_ns){t + piece_ns}, 0, &c);
		assert_int_equal(c.pieces, moment);
	}
	assert_true(audit_refutes(&c.recent));
	/* A lie shows in one long absence, too. */
	c = (struct presence_count){0};
	presence_left(&p, (struct host_ns){1000}, 0);
	for (int i = 1; i <= AUDIT_REFUTES; i++)
		presence_event(&p, (struct host_ns){1000 + i * piece_ns}, 0, &c);
	presence_back(&p, (struct host_ns){20 * piece_ns}, 0, &c);
	assert_true(audit_refutes(&c.recent));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_is_refuted_by_many_moments_not_by_many_events),
		cmocka_unit_test(presence_is_judged_by_the_vcpus_entries_and_exits),
		cmocka_unit_test(a_flood_while_away_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
