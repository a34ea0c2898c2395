// SPDX-License-Identifier: GPL-2.0-only
/* Which VM a command line means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host-collector/cli/feed.h"

static void test_one_vm_is_named(void **state)
{
	static const struct {
		struct feed_arguments arguments;
		bool right;
	} cases[] = {
		{{.vm = NULL}, false},
		{{.vm = "web1"}, true},
		{{.pid = 1}, true},
		{{.qmp = "/run/web1.qmp"}, true},
		{{.pid = 1, .qmp = "/run/web1.qmp"}, true}, /* its life-cycle events, too */
		{{.vm = "web1", .pid = 1}, false},
		{{.vm = "web1", .qmp = "/run/web1.qmp"}, false},
		{{.pid = (uint64_t)INT32_MAX + 1}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(!*feed_arguments_check(&cases[i].arguments), cases[i].right);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_vm_is_named)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
