/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests perf's tracepoints on the running kernel. Needs root and tracefs; skips otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/perf/perf_probe.h"

static void switches_arrive_and_match_their_format(void **state)
{
	struct perf_probe_result result;
	char why[256] = "";

	(void)state;
	/* The probe itself sleeps and wakes every 10 ms. */
	assert_int_equal(
		perf_probe_tracepoint("sched", "sched_switch", 200, &result, why, sizeof(why)), 0);
	assert_true(result.events + result.lost >= 10);
	assert_int_equal(result.strange, 0);
}

static void an_unknown_tracepoint_is_named(void **state)
{
	struct perf_probe_result result;
	char why[256] = "";

	(void)state;
	assert_int_equal(perf_probe_tracepoint("sched", "no_such", 10, &result, why, sizeof(why)),
			 -ENOENT);
	assert_non_null(strstr(why, "sched:no_such"));
	assert_int_equal(perf_probe_tracepoint("sched", "no_such", 10, &result, NULL, 0), -ENOENT);
}

static void without_rights_the_reason_is_said(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (!child) {
		struct perf_probe_result result;
		char why[256] = "";

		if (setresuid(65534, 65534, 65534))
			_exit(2);
		if (!perf_probe_tracepoint("sched", "sched_switch", 10, &result, why, sizeof(why)))
			_exit(3);
		_exit(strstr(why, "root") ? 0 : 4);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switches_arrive_and_match_their_format),
		cmocka_unit_test(an_unknown_tracepoint_is_named),
		cmocka_unit_test(without_rights_the_reason_is_said),
	};
	struct perf_probe_result result;
	char why[256];

	if (perf_probe_tracepoint("sched", "sched_switch", 10, &result, why, sizeof(why))) {
		printf("skip: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
