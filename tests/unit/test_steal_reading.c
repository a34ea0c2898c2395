// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "guest-agent/steal.h"

static const struct {
	const char *name, *text;
	size_t n;
	struct message_cpu_steal cpus[2];
} cases[] = {
	{"two CPUs, the sum of them left out",
	 "cpu  9 9 9 9 9 9 9 99 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 12 0 0\n"
	 "intr 5 6\n",
	 2,
	 {{0, 80}, {1, 120}}},
	{"a hole", "cpu3 1 2 3 4 5 6 7 1 0 0\nintr 1\ncpu4 1 2 3 4 5 6 7 1 0 0\n", 1, {{3, 10}}},
	{"a kernel without steal", "cpu0 1 2 3 4 5 6 7\n", 0, {{0, 0}}},
	{"cut in the figure", "cpu0 1 2 3 4 5 6 7 8", 0, {{0, 0}}},
	{"no number", "cpu0 1 2 3 4 5 6 7 x\n", 0, {{0, 0}}},
	{"a CPU beyond all", "cpu1024 1 2 3 4 5 6 7 8\n", 0, {{0, 0}}},
	{"empty", "", 0, {{0, 0}}},
};

static void steal_is_found(void **state)
{
	struct message_steal *m = calloc(1, sizeof(*m));

	(void)state;
	assert_non_null(m);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		steal_parse(cases[i].text, 10, m);
		if (m->n_cpus != cases[i].n)
			fail_msg("case '%s': %zu CPUs", cases[i].name, m->n_cpus);
		for (size_t k = 0; k < m->n_cpus; k++) {
			if (m->cpus[k].cpu != cases[i].cpus[k].cpu ||
			    m->cpus[k].steal_ns != cases[i].cpus[k].steal_ns)
				fail_msg("case '%s', CPU %zu", cases[i].name, k);
		}
	}
	free(m);
}

static void this_machine_shows_its_steal(void **state)
{
	struct message_steal *m = calloc(1, sizeof(*m));

	(void)state;
	assert_non_null(m);
	steal_read(steal_clock_present(), m);
	assert_true(m->known);
	assert_true(m->n_cpus > 0);
	assert_true(m->time > m->err && m->err > 0);
	assert_int_equal(m->clock, steal_clock_present());
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steal_is_found),
		cmocka_unit_test(this_machine_shows_its_steal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
