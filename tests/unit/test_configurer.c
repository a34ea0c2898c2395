// SPDX-License-Identifier: GPL-2.0-only
/* Tests which requests of a host the agent follows: the owner's limits, the rate of requests,
 * the budgets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "guest-agent/configurer.h"

static const struct limits owner = {
	.classes = EVENT_CLASSES_ALL & ~(1u << EVENT_CLASS_KERNEL_LOG),
	.sample_hz_max = 100,
	.fields = 1u << CONFIG_CLASSES | 1u << CONFIG_TASKS | 1u << CONFIG_SAMPLE_HZ |
		  1u << CONFIG_LOOK,
};

static const struct message_config_limit *limit_of(const struct message_config_reply *r,
						   uint32_t field)
{
	for (size_t i = 0; i < r->n_limits; i++)
		if (r->limits[i].field == field)
			return &r->limits[i];
	return NULL;
}

static void test_what_is_not_asked_for_is_the_owners(void **state)
{
	const struct message_config asked = {.id = 4, .classes = 0, .sample_hz = 99};
	struct message_config_reply r;

	(void)state;
	limits_apply(&owner, &asked, &r);
	assert_int_equal(r.id, 4);
	assert_int_equal(r.n_limits, 0);
	assert_int_equal(r.in_force.classes, owner.classes);
	assert_int_equal(r.in_force.level, GUEST_LEVEL_DETAIL);
	assert_int_equal(r.in_force.sample_hz, 0);
	assert_int_equal(r.in_force.asks, CONFIG_FIELDS_ALL);
}

static void test_looks_are_within_the_owners_limits(void **state)
{
	static const struct {
		uint64_t period_ns;
		const char *when;
		uint32_t fields;
		bool texts;
		uint64_t in_force_ns;
		uint32_t reason; /* 0: none */
		const char *text;
	} cases[] = {
		{20000000, "sched_switch == 0", 1 << CONFIG_LOOK, false, 20000000, 0, NULL},
		{1000000, "sched_switch == 0", 1 << CONFIG_LOOK, false, 10000000,
		 CONFIG_REASON_OWNER, "at most 100 ticks per second here (--max-sample-hz)"},
		{20000000, "sched_switch == 0", 0, false, 0, CONFIG_REASON_UNSUPPORTED,
		 "no looks here (no BPF)"},
		{999999, "1", 1 << CONFIG_LOOK, false, 0, CONFIG_REASON_INVALID,
		 "from 1 ms to 1 s"},
		{UINT64_MAX, "1", 1 << CONFIG_LOOK, false, 0, CONFIG_REASON_INVALID,
		 "from 1 ms to 1 s"},
		{20000000, "comm == \"fio\"", 1 << CONFIG_LOOK, false, 0, CONFIG_REASON_OWNER,
		 "character 1 of the condition: a text, which the owner does not allow"},
		{20000000, "comm == \"fio\"", 1 << CONFIG_LOOK, true, 20000000, 0, NULL},
		{20000000, "cpu == kvm_exit", 1 << CONFIG_LOOK, false, 0, CONFIG_REASON_INVALID,
		 "character 8 of the condition: 'kvm_exit' is an event of the host only"},
		{20000000, "", 1 << CONFIG_LOOK, false, 0, CONFIG_REASON_INVALID, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct message_config asked = {.asks = 1u << CONFIG_LOOK,
					       .look_period_ns = cases[i].period_ns};
		const struct message_config_limit *limit;
		struct limits l = owner;
		struct message_config_reply r;

		l.fields = cases[i].fields;
		l.texts = cases[i].texts;
		snprintf(asked.look_when, sizeof(asked.look_when), "%s", cases[i].when);
		limits_apply(&l, &asked, &r);
		limit = limit_of(&r, CONFIG_LOOK);
		assert_int_equal(r.in_force.look_period_ns, cases[i].in_force_ns);
		assert_int_equal(limit ? limit->reason : 0, cases[i].reason);
		if (cases[i].text)
			assert_string_equal(limit->text, cases[i].text);
		if (cases[i].in_force_ns)
			assert_string_equal(r.in_force.look_when, cases[i].when);
	}
}

static void test_the_owners_maxima_hold_and_are_named(void **state)
{
	struct message_config asked = {
		.asks = CONFIG_FIELDS_ALL | 1u << 30,
		.classes = 1u << EVENT_CLASS_IRQS | 1u << EVENT_CLASS_KERNEL_LOG | 1ull << 40,
		.level = GUEST_LEVEL_SUMMARY,
		.handler_over_ns = UINT64_MAX,
		.sample_hz = 10000,
		.n_tasks = 2,
		.tasks = {"fio", ""},
	};
	struct message_config_reply r;

	(void)state;
	limits_apply(&owner, &asked, &r);
	assert_int_equal(r.in_force.classes, 1 << EVENT_CLASS_SWITCHES | 1 << EVENT_CLASS_IRQS);
	assert_int_equal(r.in_force.level, GUEST_LEVEL_SUMMARY);
	assert_int_equal(r.in_force.handler_over_ns, LIMITS_HANDLER_OVER_NS);
	assert_int_equal(r.in_force.sample_hz, 100);
	assert_int_equal(r.in_force.n_tasks, 1);
	assert_string_equal(r.in_force.tasks[0], "fio");
	assert_null(limit_of(&r, CONFIG_LEVEL));
	assert_int_equal(limit_of(&r, CONFIG_HANDLER_OVER)->reason, CONFIG_REASON_INVALID);
	assert_int_equal(limit_of(&r, CONFIG_SAMPLE_HZ)->reason, CONFIG_REASON_OWNER);
	assert_string_equal(limit_of(&r, CONFIG_SAMPLE_HZ)->text,
			    "at most 100 here (--max-sample-hz)");
	assert_int_equal(limit_of(&r, CONFIG_TASKS)->reason, CONFIG_REASON_INVALID);
	assert_int_equal(limit_of(&r, 30)->reason, CONFIG_REASON_UNSUPPORTED);
	assert_int_equal(r.n_limits, 6); /* of the classes two: unknown, and turned off */
}

/* What came of a level and a threshold. reason 0: they are in force. */
static void level_check(uint64_t owners_ns, uint32_t asks, uint32_t level, uint64_t over_ns,
			uint32_t level_then, uint64_t over_then_ns, uint32_t field, uint32_t reason)
{
	struct limits l = owner;
	const struct message_config asked = {
		.asks = asks, .level = level, .handler_over_ns = over_ns};
	struct message_config_reply r;

	l.handler_over_ns = owners_ns;
	limits_apply(&l, &asked, &r);
	assert_int_equal(r.in_force.level, level_then);
	assert_int_equal(r.in_force.handler_over_ns, over_then_ns);
	assert_int_equal(r.n_limits, reason != 0);
	if (reason)
		assert_int_equal(limit_of(&r, field)->reason, reason);
}

static void test_the_level_and_its_threshold(void **state)
{
	enum {
		DETAIL = GUEST_LEVEL_DETAIL,
		SUMMARY = GUEST_LEVEL_SUMMARY,
		LEVEL = 1 << CONFIG_LEVEL,
		OVER = 1 << CONFIG_HANDLER_OVER,
		BOTH = LEVEL | OVER,
	};
	const uint64_t own = LIMITS_HANDLER_OVER_NS, max = CONFIG_HANDLER_OVER_MAX_NS;

	(void)state;
	level_check(0, LEVEL, DETAIL, 0, DETAIL, 0, 0, 0);
	level_check(0, LEVEL, SUMMARY, 7, SUMMARY, own, 0, 0);
	level_check(0, BOTH, SUMMARY, 1, SUMMARY, 1, 0, 0);
	level_check(0, BOTH, SUMMARY, max, SUMMARY, max, 0, 0);
	level_check(0, BOTH, SUMMARY, max + 1, SUMMARY, own, CONFIG_HANDLER_OVER,
		    CONFIG_REASON_INVALID);
	level_check(0, BOTH, SUMMARY, 0, SUMMARY, own, CONFIG_HANDLER_OVER, CONFIG_REASON_INVALID);
	level_check(0, OVER, SUMMARY, 5000, DETAIL, 0, CONFIG_HANDLER_OVER, CONFIG_REASON_INVALID);
	level_check(0, LEVEL, 3, 0, DETAIL, 0, CONFIG_LEVEL, CONFIG_REASON_INVALID);
	level_check(0, LEVEL, 0, 0, DETAIL, 0, CONFIG_LEVEL, CONFIG_REASON_INVALID);
	/* An owner who has handlers counted: more of them may be. */
	level_check(20000, 0, 0, 0, SUMMARY, 20000, 0, 0);
	level_check(20000, LEVEL, DETAIL, 0, SUMMARY, 20000, CONFIG_LEVEL, CONFIG_REASON_OWNER);
	level_check(20000, LEVEL, SUMMARY, 0, SUMMARY, 20000, 0, 0);
	level_check(20000, OVER, 0, 19999, SUMMARY, 20000, CONFIG_HANDLER_OVER,
		    CONFIG_REASON_OWNER);
	level_check(20000, BOTH, SUMMARY, 50000, SUMMARY, 50000, 0, 0);
}

static void test_an_owner_who_allows_nothing(void **state)
{
	struct limits no = owner;
	const struct message_config asked = {.asks = CONFIG_FIELDS_ALL, .sample_hz = 50};
	struct message_config_reply r;
	struct message_config own;

	(void)state;
	no.no_host_config = true;
	limits_default(&no, &own);
	limits_apply(&no, &asked, &r);
	assert_memory_equal(&r.in_force, &own, sizeof(own));
	assert_int_equal(r.n_limits, CONFIG_FIELDS);
	for (size_t i = 0; i < r.n_limits; i++)
		assert_int_equal(r.limits[i].reason, CONFIG_REASON_OWNER);
}

static void test_a_capture_that_can_change_nothing(void **state)
{
	struct limits fixed = owner;
	const struct message_config asked = {.asks = CONFIG_FIELDS_ALL,
					     .classes = 0,
					     .level = GUEST_LEVEL_DETAIL,
					     .sample_hz = 50,
					     .n_tasks = 1,
					     .tasks = {"fio"}};
	struct message_config_reply r;

	(void)state;
	fixed.fields = 0;
	fixed.classes = EVENT_CLASSES_ALL;
	limits_apply(&fixed, &asked, &r);
	/* The kernel's log needs no capture. */
	assert_int_equal(r.in_force.classes, EVENT_CLASSES_ALL & ~(1 << EVENT_CLASS_KERNEL_LOG));
	assert_int_equal(limit_of(&r, CONFIG_CLASSES)->reason, CONFIG_REASON_UNSUPPORTED);
	assert_int_equal(r.in_force.sample_hz, 0);
	assert_int_equal(r.in_force.n_tasks, 0);
	assert_null(limit_of(&r, CONFIG_LEVEL));
}

/* Whatever a host sends: never more than the owner allows. */
static void test_no_config_gets_more_than_the_owner_allows(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		struct message_config asked;
		struct message_config_reply r;
		struct limits l = owner;

		for (size_t i = 0; i < sizeof(asked); i++)
			((uint8_t *)&asked)[i] = (uint8_t)random();
		asked.n_tasks %= VS_CONFIG_TASKS_MAX + 1;
		for (size_t i = 0; i < VS_CONFIG_TASKS_MAX; i++)
			asked.tasks[i][VS_TASK_PATTERN_MAX - 1] = '\0';
		l.classes = (uint64_t)random() & EVENT_CLASSES_ALL;
		l.sample_hz_max = (uint32_t)random() % 1000;
		l.sample_hz = l.sample_hz_max ? (uint32_t)random() % l.sample_hz_max : 0;
		l.fields = (uint32_t)random();
		l.no_host_config = random() % 8 == 0;
		l.handler_over_ns = (uint64_t)random() % CONFIG_HANDLER_OVER_MAX_NS;
		if (random() % 2)
			asked.handler_over_ns %= 2ull * CONFIG_HANDLER_OVER_MAX_NS;
		limits_apply(&l, &asked, &r);
		assert_false(r.in_force.classes & ~(l.classes | 1u << EVENT_CLASS_SWITCHES));
		assert_true(r.in_force.classes & 1u << EVENT_CLASS_SWITCHES);
		assert_true(r.in_force.sample_hz <= l.sample_hz_max);
		assert_true(r.in_force.level == GUEST_LEVEL_DETAIL ||
			    r.in_force.level == GUEST_LEVEL_SUMMARY);
		assert_true(r.in_force.handler_over_ns <= CONFIG_HANDLER_OVER_MAX_NS);
		assert_true(r.in_force.handler_over_ns >= l.handler_over_ns);
		assert_true(r.in_force.level == GUEST_LEVEL_SUMMARY || !r.in_force.handler_over_ns);
		assert_true(r.in_force.n_tasks <= VS_CONFIG_TASKS_MAX);
		assert_true(r.n_limits <= VS_CONFIG_LIMITS_MAX);
	}
}

struct fixture {
	struct configurer c;
	struct configurer_now now;
	struct message_config in_force;
	int applied;
};

static void on_apply(void *context, struct message_config_reply *reply)
{
	struct fixture *f = context;

	f->in_force = reply->in_force;
	f->applied++;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct configurer_options options = {.limits = owner,
						   .cpu_permille = 200,
						   .memory_bytes = 64 << 20,
						   .apply = on_apply,
						   .context = f};

	configurer_init(&f->c, &options);
	f->now = (struct configurer_now){.ms = 1000, .host = true, .session = 1};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static const struct message_config_reply *step(struct fixture *f, uint64_t ms, uint64_t cpu_ns)
{
	f->now.ms += ms;
	f->now.cpu_ns += cpu_ns;
	return configurer_step(&f->c, &f->now);
}

static void ask(struct fixture *f, uint32_t id, uint32_t hz)
{
	configurer_ask(&f->c, &(struct message_config){
				      .id = id, .asks = 1u << CONFIG_SAMPLE_HZ, .sample_hz = hz});
}

static void test_a_storm_of_configs_comes_into_force_once_a_second(void **state)
{
	struct fixture *f = *state;
	uint32_t last = 0;

	assert_null(step(f, 0, 0));
	for (uint32_t i = 0; i < 100; i++) {
		const struct message_config_reply *r;

		ask(f, i, 10 + i % 50);
		r = step(f, 100, 0);
		if (r)
			last = r->id;
	}
	assert_in_range(f->applied, 9, 11);
	assert_in_range(last, 85, 99);
	assert_non_null(step(f, 1000, 0)); /* the newest, not the next of a queue */
	assert_null(step(f, 5000, 0));
}

static void test_the_owners_settings_return_with_the_host_gone(void **state)
{
	struct fixture *f = *state;

	ask(f, 1, 50);
	assert_non_null(step(f, 100, 0));
	assert_int_equal(f->in_force.sample_hz, 50);
	f->now.host = false;
	assert_null(step(f, 100, 0));
	assert_int_equal(f->in_force.sample_hz, 0);
	/* A host that comes back without a word of it, and one that asks again. */
	f->now.host = true;
	f->now.session = 2;
	ask(f, 1, 50);
	assert_non_null(step(f, 1000, 0));
	f->now.session = 3;
	assert_null(step(f, 100, 0));
	assert_int_equal(f->in_force.sample_hz, 50);
	assert_null(step(f, CONFIGURER_FORGET_MS, 0));
	assert_int_equal(f->in_force.sample_hz, 0);
	f->now.session = 4;
	ask(f, 2, 60);
	assert_non_null(step(f, 1000, 0));
	assert_null(step(f, CONFIGURER_FORGET_MS * 2, 0));
	assert_int_equal(f->in_force.sample_hz, 60);
}

static void test_used_up_cpu_ends_what_was_added(void **state)
{
	struct fixture *f = *state;
	const struct message_config_reply *r;

	assert_null(step(f, 0, 12345));
	ask(f, 1, 50);
	assert_non_null(step(f, 100, 0));
	/* 19 % of a CPU is within the budget, 21 % is not. */
	assert_null(step(f, CONFIGURER_WINDOW_MS, CONFIGURER_WINDOW_MS * 190000));
	r = step(f, CONFIGURER_WINDOW_MS, CONFIGURER_WINDOW_MS * 210000);
	assert_non_null(r);
	assert_int_equal(r->id, 1);
	assert_int_equal(r->in_force.sample_hz, 0);
	assert_int_equal(limit_of(r, CONFIG_SAMPLE_HZ)->reason, CONFIG_REASON_BUDGET);
	assert_int_equal(f->in_force.sample_hz, 0);
	/* Asking again does not help at once; later it does. */
	ask(f, 2, 50);
	r = step(f, CONFIGURER_WINDOW_MS, 0);
	assert_int_equal(r->in_force.sample_hz, 0);
	ask(f, 3, 50);
	r = step(f, CONFIGURER_BUDGET_MS, 0);
	assert_int_equal(r->in_force.sample_hz, 50);
	f->now.memory_bytes = (64 << 20) + 1;
	r = step(f, 100, 0);
	assert_int_equal(r->in_force.sample_hz, 0);
	assert_string_equal(limit_of(r, CONFIG_SAMPLE_HZ)->text,
			    "the agent's memory was used up (--max-memory)");
}

static void test_events_are_extras_and_end_with_the_budget_and_the_host(void **state)
{
	static const struct message_config asked = {
		.id = 1,
		.asks = 1u << CONFIG_EVENTS | 1u << CONFIG_LOOK,
		.n_events = 2,
		.events = {{.kind = 1, .system = "sched", .name = "sched_switch"},
			   {.kind = 1, .system = "kmem", .name = "kfree"}},
		.look_period_ns = 20000000,
		.look_when = "sched_switch == 0"};
	const struct message_config_reply *r;
	struct fixture *f = *state;

	assert_null(step(f, 0, 0));
	configurer_ask(&f->c, &asked);
	r = step(f, 100, 0);
	assert_int_equal(r->n_limits, 0);
	assert_int_equal(f->in_force.n_events, 2); /* the policy is asked later */
	assert_int_equal(f->in_force.look_period_ns, 20000000);
	assert_string_equal(f->in_force.events[1].name, "kfree");
	r = step(f, CONFIGURER_WINDOW_MS, CONFIGURER_WINDOW_MS * 250000);
	assert_non_null(r);
	assert_int_equal(f->in_force.n_events, 0);
	assert_int_equal(limit_of(r, CONFIG_EVENTS)->reason, CONFIG_REASON_BUDGET);
	assert_string_equal(limits_text(r, CONFIG_EVENTS),
			    "the agent's CPU was used up (--max-cpu)");
	assert_int_equal(f->in_force.look_period_ns, 0);
	assert_string_equal(limits_text(r, CONFIG_LOOK), "the agent's CPU was used up (--max-cpu)");
	configurer_ask(&f->c, &asked);
	assert_non_null(step(f, CONFIGURER_WINDOW_MS, 0));
	assert_int_equal(f->in_force.n_events, 0);
	configurer_ask(&f->c, &asked);
	assert_non_null(step(f, CONFIGURER_BUDGET_MS, 0));
	assert_int_equal(f->in_force.n_events, 2);
	assert_int_equal(f->in_force.look_period_ns, 20000000);
	f->now.host = false;
	assert_null(step(f, 100, 0));
	assert_int_equal(f->in_force.n_events, 0);
	assert_int_equal(f->in_force.look_period_ns, 0);
}

static void test_what_the_owner_has_is_not_taken_for_a_budget(void **state)
{
	struct fixture *f = *state;
	const struct configurer_options options = {.limits = {.classes = EVENT_CLASSES_ALL,
							      .sample_hz = 99,
							      .sample_hz_max = 99,
							      .fields = 1u << CONFIG_SAMPLE_HZ},
						   .cpu_permille = 1,
						   .apply = on_apply,
						   .context = f};

	configurer_init(&f->c, &options);
	assert_null(step(f, 0, 0));
	assert_null(step(f, CONFIGURER_WINDOW_MS, 1000000000));
	assert_int_equal(f->applied, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_not_asked_for_is_the_owners),
		cmocka_unit_test(test_looks_are_within_the_owners_limits),
		cmocka_unit_test(test_the_owners_maxima_hold_and_are_named),
		cmocka_unit_test(test_the_level_and_its_threshold),
		cmocka_unit_test(test_an_owner_who_allows_nothing),
		cmocka_unit_test(test_a_capture_that_can_change_nothing),
		cmocka_unit_test(test_no_config_gets_more_than_the_owner_allows),
		cmocka_unit_test_setup_teardown(
			test_a_storm_of_configs_comes_into_force_once_a_second, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_owners_settings_return_with_the_host_gone,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_events_are_extras_and_end_with_the_budget_and_the_host, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_used_up_cpu_ends_what_was_added, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_what_the_owner_has_is_not_taken_for_a_budget,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
