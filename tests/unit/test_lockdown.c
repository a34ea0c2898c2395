// SPDX-License-Identifier: GPL-2.0-only
/* Tests that a locked-down kernel is distinguished from one whose verifier refuses a program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "bpf/capture/lockdown.h"

static void the_mode_in_force_decides(void **state)
{
	static const char unknown[] = "program of unknown func bpf_probe_read_str#45",
			  other[] = "R1 type=scalar expected=fp";
	static const struct {
		const char *file, *complaint;
		bool explains;
	} cases[] = {
		{"none integrity [confidentiality]\n", unknown, true},
		{"none integrity [confidentiality]\n", other, true},
		{"none [integrity] confidentiality\n", unknown, false},
		{"[none] integrity confidentiality\n", other, false},
		{"", unknown, false},
		{NULL, unknown, true},
		{NULL, other, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[] = "/tmp/test_lockdown.XXXXXX";
		const int fd = mkstemp(path);

		assert_true(fd >= 0);
		if (cases[i].file)
			dprintf(fd, "%s", cases[i].file);
		else
			unlink(path);
		assert_int_equal(lockdown_explains(path, cases[i].complaint), cases[i].explains);
		close(fd);
		unlink(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_mode_in_force_decides)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
