// SPDX-License-Identifier: GPL-2.0-only
/* Tests the agent's command line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "guest-agent/arguments.h"

static int parse(const char *a, const char *b, struct arguments *out, struct option_messages *m)
{
	static char first[64], second[64];
	char *argv[] = {(char *)"vcpuscope-agent", first, second, NULL};

	snprintf(first, sizeof(first), "%s", a);
	if (b)
		snprintf(second, sizeof(second), "%s", b);
	arguments_default(out);
	return options_parse(&agent_command, b ? 3 : 2, argv, out, m);
}

static void values_are_read_in_all_forms(void **state)
{
	struct option_messages m;
	struct arguments got;

	(void)state;
	assert_int_equal(parse("--interval", "5ms", &got, &m), 0);
	assert_int_equal(got.interval_ns, 5000000);
	assert_int_equal(got.backlog_bytes, 4 << 20);
	assert_int_equal(parse("-i7ms", "--no-kernel-log", &got, &m), 0);
	assert_int_equal(got.interval_ns, 7000000);
	assert_true(got.no_kernel_log);
	assert_int_equal(parse("--connect=unix:/x", NULL, &got, &m), 0);
	assert_string_equal(got.connect, "unix:/x");
	assert_int_equal(parse("--max-cpu=5%", "--backlog=16M", &got, &m), 0);
	assert_int_equal(got.max_cpu_percent, 5);
	assert_int_equal(got.backlog_bytes, 16 << 20);
	assert_string_equal(m.warnings, "");
}

/* The forms of the release before, for one release. */
static void numbers_without_a_unit_warn(void **state)
{
	static const struct {
		const char *name, *value, *write;
		size_t offset;
		uint64_t means;
	} cases[] = {
		{"--interval", "5", "write 5ms", offsetof(struct arguments, interval_ns), 5000000},
		{"--backlog", "2", "write 2M", offsetof(struct arguments, backlog_bytes), 2 << 20},
		{"--ring", "8", "write 8M", offsetof(struct arguments, ring_bytes), 8 << 20},
		{"--handlers-over", "40", "write 40us",
		 offsetof(struct arguments, handlers_over_ns), 40000},
		{"--max-cpu", "30", "write 30%", offsetof(struct arguments, max_cpu_percent), 30},
		{"--max-memory", "128", "write 128M", offsetof(struct arguments, max_memory_bytes),
		 128 << 20},
		{"--run-for", "10", "write 10s", offsetof(struct arguments, run_for_ns),
		 10000000000},
	};
	struct option_messages m;
	struct arguments got;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(cases[i].name, cases[i].value, &got, &m), 0);
		assert_int_equal(*(uint64_t *)((char *)&got + cases[i].offset), cases[i].means);
		assert_non_null(strstr(m.warnings, cases[i].write));
	}
}

static void mistakes_are_refused_in_one_line(void **state)
{
	static const char *const cases[][2] = {
		{"--interval", "0"},    {"--interval", "101"},  {"--interval", "x"},
		{"--interval", ""},     {"--interval", "5x"},   {"--interval", "-5"},
		{"--interval", NULL},   {"--inter", "5"},       {"--help=yes", NULL},
		{"-v", NULL},           {"stray", NULL},        {"--run-for", "99999999999"},
		{"--interval", "99us"}, {"--backlog", "1025M"}, {"--backend", "bp"},
		{"--max-cpu", "0%"},    {"--max-memory", "7M"}, {"--sample-hz", "0"},
		{"--run-for", "25h"},   {"--max-cpu", "101%"},
	};
	struct option_messages m;
	struct arguments got;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (parse(cases[i][0], cases[i][1], &got, &m) != -EINVAL)
			fail_msg("'%s %s' was accepted", cases[i][0], cases[i][1]);
		assert_true(m.error[0] && !strchr(m.error, '\n'));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_read_in_all_forms),
		cmocka_unit_test(numbers_without_a_unit_warn),
		cmocka_unit_test(mistakes_are_refused_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
