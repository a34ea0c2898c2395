/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the text form of the agent's configuration: parsing options, and writing it for users.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "host-collector/cli/guest_options.h"
#include "host-collector/decode/config_text.h"

static void a_level_is_asked_for_with_its_threshold(void **state)
{
	static const struct {
		const char *level;
		uint64_t over_ns;
		uint32_t asks, level_asked;
		const char *wrong;
	} cases[] = {
		{NULL, 0, 0, 0, NULL},
		{"detail", 0, 1 << CONFIG_LEVEL, GUEST_LEVEL_DETAIL, NULL},
		{"summary", 0, 1 << CONFIG_LEVEL, GUEST_LEVEL_SUMMARY, NULL},
		{"summary", 1000000000, 1 << CONFIG_LEVEL | 1 << CONFIG_HANDLER_OVER,
		 GUEST_LEVEL_SUMMARY, NULL},
		{"summary", 1000000001, 0, 0, "--guest-handlers-over: at most 1s"},
		{"detail", 5000, 0, 0, "needs --guest-level summary"},
		{NULL, 5000, 0, 0, "needs --guest-level summary"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct guest_arguments a = {.level = cases[i].level,
						  .handlers_over_ns = cases[i].over_ns};
		struct message_config asked;
		char why[256] = "";
		const int err = guest_arguments_read(&a, 0, &asked, why, sizeof(why));

		assert_int_equal(err, cases[i].wrong ? -EINVAL : 0);
		if (cases[i].wrong) {
			assert_non_null(strstr(why, cases[i].wrong));
			continue;
		}
		assert_int_equal(asked.asks, cases[i].asks);
		assert_int_equal(asked.level, cases[i].level_asked);
		assert_int_equal(asked.handler_over_ns, cases[i].over_ns);
	}
}

static void lists_are_read_and_mistakes_named(void **state)
{
	struct guest_arguments a = {.events = "irqs,,kernel-log", .task_filter = "fio,kworker*"};
	struct message_config asked;
	char why[256] = "";

	(void)state;
	assert_int_equal(guest_arguments_read(&a, 99, &asked, why, sizeof(why)), 0);
	assert_int_equal(asked.asks,
			 1 << CONFIG_CLASSES | 1 << CONFIG_TASKS | 1 << CONFIG_SAMPLE_HZ);
	assert_int_equal(asked.classes, 1 << EVENT_CLASS_SWITCHES | 1 << EVENT_CLASS_IRQS |
						1 << EVENT_CLASS_KERNEL_LOG);
	assert_int_equal(asked.n_tasks, 2);
	assert_string_equal(asked.tasks[1], "kworker*");
	a.events = "irq";
	assert_int_equal(guest_arguments_read(&a, 0, &asked, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "there is no 'irq'"));
	a.events = NULL;
	a.task_filter = "a-name-of-16-byt";
	assert_int_equal(guest_arguments_read(&a, 0, &asked, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "longer than a task's name"));
}

static void what_is_in_force_is_said(void **state)
{
	struct message_config c = {.classes = EVENT_CLASSES_ALL, .level = GUEST_LEVEL_DETAIL};
	char text[256];

	(void)state;
	config_describe(&c, text, sizeof(text));
	assert_string_equal(text, "the guest sends all events");
	c = (struct message_config){.classes = 1 << EVENT_CLASS_SWITCHES | 1 << EVENT_CLASS_IRQS,
				    .level = GUEST_LEVEL_SUMMARY,
				    .handler_over_ns = 100000,
				    .sample_hz = 99,
				    .n_tasks = 1,
				    .tasks = {"fio"}};
	config_describe(&c, text, sizeof(text));
	assert_string_equal(text,
			    "the guest sends switches,irqs of fio, handlers of at least 100 us; "
			    "99 stacks per second");
	c.look_period_ns = 2500000;
	snprintf(c.look_when, sizeof(c.look_when), "sched_switch == 0");
	config_describe(&c, text, sizeof(text));
	assert_string_equal(text,
			    "the guest sends switches,irqs of fio, handlers of at least 100 us; "
			    "99 stacks per second; looks every 2.5 ms, when sched_switch == 0");
	/* Whatever an agent says, and however little room there is. */
	c.handler_over_ns = UINT64_MAX;
	config_describe(&c, text, 48);
	assert_int_equal(strlen(text), 47);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_level_is_asked_for_with_its_threshold),
		cmocka_unit_test(lists_are_read_and_mistakes_named),
		cmocka_unit_test(what_is_in_force_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
