// SPDX-License-Identifier: GPL-2.0-only
/* Tests the condition of looks: the tracepoints that it counts, the tests that the kernel runs,
 * and the message for each mistake. The test has its own evaluator for the tests. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "bpf/chosen/look_condition.h"

static struct capture_look look;

static void compile(const char *text, enum event_side side)
{
	struct expr_error error;

	memset(&look, 0xff, sizeof(look));
	if (look_condition_compile(text, side, false, &look, &error))
		fail_msg("%s: %s", text, error.text);
}

/* What the BPF program computes, with these counts and this CPU. */
static bool holds(const uint64_t counts[VS_LOOK_COUNTS], uint64_t cpu)
{
	uint32_t at = look.n_tests ? look.first_test : VS_USER_KEEP;

	for (int i = 0; i < VS_USER_TESTS_MAX && at < VS_USER_TESTS_MAX; i++) {
		const struct vs_user_test *t = &look.tests[at];
		uint64_t value;

		assert_true(at < look.n_tests);
		if (t->value.from == VS_FROM_COUNT)
			value = counts[t->value.number];
		else if (t->value.from == VS_FROM_CPU)
			value = cpu;
		else
			value = (uint64_t)t->value.number;
		value &= t->mask;
		at = (t->compare == VS_COMPARE_LESS ? value < t->number : value == t->number)
			     ? t->on_true
			     : t->on_false;
	}
	return at == VS_USER_KEEP;
}

static void counts_are_compared(void **state)
{
	const uint64_t none[VS_LOOK_COUNTS] = {0}, one[VS_LOOK_COUNTS] = {1},
		       some[VS_LOOK_COUNTS] = {0, 1001}, both[VS_LOOK_COUNTS] = {1, 1000};

	(void)state;
	compile("sched_switch == 0", EVENT_HOST);
	assert_int_equal(look.n_counts, 1);
	assert_string_equal(look.counts[0].system, "sched");
	assert_string_equal(look.counts[0].name, "sched_switch");
	assert_true(holds(none, 0));
	assert_false(holds(one, 0));
	compile("!sched_switch && (kvm_exit > 1000 || cpu == 3)", EVENT_HOST);
	assert_int_equal(look.n_counts, 2);
	assert_string_equal(look.counts[1].system, "kvm");
	assert_string_equal(look.counts[1].name, "kvm_exit");
	assert_false(holds(none, 0));
	assert_true(holds(none, 3));
	assert_true(holds(some, 0));
	assert_false(holds(both, 3));
	/* An event that is named twice is counted once. */
	compile("sched_switch > 0 && sched_switch < 2", EVENT_GUEST);
	assert_int_equal(look.n_counts, 1);
	assert_true(holds(one, 0));
	compile("1", EVENT_GUEST);
	assert_int_equal(look.n_counts, 0);
	assert_true(holds(none, 0));
}

/* Several tracepoints may be one type of event, and one may have a name like a field. */
static void tracepoints_of_one_type_are_told_apart(void **state)
{
	(void)state;
	compile("local_timer_entry > 0 && reschedule_entry == 0", EVENT_GUEST);
	assert_int_equal(look.n_counts, 2);
	assert_string_equal(look.counts[0].name, "local_timer_entry");
	assert_string_equal(look.counts[1].name, "reschedule_entry");
	assert_string_equal(look.counts[1].system, "irq_vectors");
}

static void texts_are_compared_if_the_owner_allows(void **state)
{
	struct expr_error error;

	(void)state;
	compile("comm ~ \"fio*\"", EVENT_GUEST);
	assert_int_equal(look.n_tests, 1);
	assert_int_equal(look.tests[0].value.from, VS_FROM_COMM);
	assert_int_equal(look_condition_compile("cpu == 1 || comm == \"fio\"", EVENT_GUEST, true,
						&look, &error),
			 -EPERM);
	assert_int_equal(error.at, 12);
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *text;
		enum event_side side;
		int err;
		size_t at;
		const char *says;
	} cases[] = {
		{"cpu == 0 && sched_swich == 0", EVENT_HOST, -EINVAL, 12,
		 "did you mean 'sched_switch'?"},
		{"irq_handler_entry > 0", EVENT_HOST, -EINVAL, 0,
		 "'irq_handler_entry' is an event of the guest only"},
		{"kvm_exit > 0", EVENT_GUEST, -EINVAL, 0,
		 "'kvm_exit' is an event of the host only"},
		/* Fields of events at which there is no tick. */
		{"vcpu == 0", EVENT_HOST, -EINVAL, 0, "there is no field 'vcpu'"},
		{"exit_reason == 0", EVENT_HOST, -EINVAL, 0, "there is no field 'exit_reason'"},
		{"sched_switch ==", EVENT_HOST, -EINVAL, 15, "expected"},
		{"", EVENT_HOST, -EINVAL, 0, "expected"},
		{"sched_switch > sched_wakeup", EVENT_HOST, -EINVAL, 13, "with a number"},
		{"sched_switch * 2 > 4", EVENT_HOST, -EINVAL, 13, "compares a field"},
		{"sched_switch+sched_wakeup+kvm_exit+kvm_entry+kvm_mmio+kvm_pio+kvm_msr+kvm_hypercall+"
		 "kvm_page_fault == 0",
		 EVENT_HOST, -E2BIG, 84, "at most 8 different events"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct expr_error error;
		int err =
			look_condition_compile(cases[i].text, cases[i].side, false, &look, &error);

		if (err != cases[i].err || error.at != cases[i].at ||
		    !strstr(error.text, cases[i].says))
			fail_msg("%s: %d at %zu: %s", cases[i].text, err, error.at, error.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_compared),
		cmocka_unit_test(tracepoints_of_one_type_are_told_apart),
		cmocka_unit_test(texts_are_compared_if_the_owner_allows),
		cmocka_unit_test(mistakes_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
