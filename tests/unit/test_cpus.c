// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "guest-agent/cpus.h"

static const struct {
	const char *name, *text;
	size_t n;
	struct message_cpu cpus[4];
} cases[] = {
	{"two CPUs with a hole in the APIC ids",
	 "processor\t: 0\nvendor_id\t: X\napicid\t\t: 0\ninitial apicid\t: 0\n\n"
	 "processor\t: 1\nvendor_id\t: X\napicid\t\t: 64\ninitial apicid\t: 1\n\n",
	 2,
	 {{0, 0}, {1, 64}}},
	{"CPU 1 offline",
	 "processor : 0\napicid : 2\n\nprocessor : 2\napicid : 4\n",
	 2,
	 {{0, 2}, {2, 4}}},
	{"uniprocessor kernels print no apicid",
	 "processor\t: 0\nmodel name\t: apicid : 7\n",
	 0,
	 {{0, 0}}},
	{"an apicid that belongs to nobody", "apicid\t\t: 3\n", 0, {{0, 0}}},
	{"no number", "processor\t: 0\napicid\t\t: x\n", 0, {{0, 0}}},
	{"number too large", "processor\t: 0\napicid\t\t: 99999999999\n", 0, {{0, 0}}},
	{"last line without a newline", "processor: 5\napicid: 6", 1, {{5, 6}}},
	{"empty", "", 0, {{0, 0}}},
};

static void pairs_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct message_cpu cpus[4] = {{0, 0}};

		if (cpus_parse(cases[i].text, cpus, 4) != cases[i].n ||
		    memcmp(cpus, cases[i].cpus, cases[i].n * sizeof(cpus[0])) != 0)
			fail_msg("case '%s'", cases[i].name);
	}
}

static void more_cpus_than_room_are_left_out(void **state)
{
	struct message_cpu cpus[2] = {{9, 9}, {9, 9}};

	(void)state;
	assert_int_equal(cpus_parse(cases[0].text, cpus, 1), 1);
	assert_int_equal(cpus[1].cpu, 9);
}

static void this_machine_has_cpus(void **state)
{
	struct message_cpu cpus[VS_CPUS_MAX];

	(void)state;
	assert_in_range(cpus_read(cpus, VS_CPUS_MAX), 1, VS_CPUS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_are_found),
		cmocka_unit_test(more_cpus_than_room_are_left_out),
		cmocka_unit_test(this_machine_has_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
