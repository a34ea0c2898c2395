// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "guest-agent/arguments.h"

static int parse(const char *a, const char *b, struct arguments *out, char *why)
{
	static char first[64], second[64];
	char *argv[] = {(char *)"vcpuscope-agent", first, second, NULL};

	snprintf(first, sizeof(first), "%s", a);
	if (b)
		snprintf(second, sizeof(second), "%s", b);
	why[0] = '\0';
	return arguments_parse(b ? 3 : 2, argv, out, why, 256);
}

static void values_are_read_in_both_forms(void **state)
{
	struct arguments got;
	char why[256];

	(void)state;
	assert_int_equal(parse("--interval", "5", &got, why), 0);
	assert_int_equal(got.interval_ms, 5);
	assert_int_equal(got.backlog_mib, 4);
	assert_int_equal(parse("--interval=7", "--no-kernel-log", &got, why), 0);
	assert_int_equal(got.interval_ms, 7);
	assert_true(got.no_kernel_log);
	assert_int_equal(parse("--connect=unix:/x", NULL, &got, why), 0);
	assert_string_equal(got.connect, "unix:/x");
}

static void nonsense_is_refused_in_one_line(void **state)
{
	static const char *const cases[][2] = {
		{"--interval", "0"},  {"--interval", "101"}, {"--interval", "x"},
		{"--interval", ""},   {"--interval", "5x"},  {"--interval", "-5"},
		{"--interval", NULL}, {"--inter", "5"},      {"--help=yes", NULL},
		{"-v", NULL},         {"stray", NULL},       {"--run-for", "99999999999"},
	};
	struct arguments got;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (parse(cases[i][0], cases[i][1], &got, why) != -EINVAL)
			fail_msg("'%s' was accepted", cases[i][0]);
		assert_true(why[0] && !strchr(why, '\n'));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_read_in_both_forms),
		cmocka_unit_test(nonsense_is_refused_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
