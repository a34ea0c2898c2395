/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the recognition of lines of the kernel's log: lines in the form of the kernels' sources,
 * and lines that only look similar. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "host-collector/model/host_log.h"

static const struct {
	const char *text;
	enum host_log_kind kind;
	int number; /* CPU or pid */
} cases[] = {
	{"watchdog: BUG: soft lockup - CPU#37 stuck for 22s! [kworker/37:1:812]", HOST_LOG_LOCKUP,
	 37},
	{"NMI watchdog: Watchdog detected hard LOCKUP on cpu 5", HOST_LOG_LOCKUP, 5},
	{"watchdog: Watchdog detected hard LOCKUP on cpu 0", HOST_LOG_LOCKUP, 0},
	{"x86/split lock detection: #AC: CPU 0/KVM/4711 took a split_lock trap at address: 0x4011a2",
	 HOST_LOG_SPLIT_LOCK, 4711},
	{"x86/split lock detection: #AC: CPU 12/KVM/9 fatal split_lock trap at address: 0x1",
	 HOST_LOG_SPLIT_LOCK, 9},
	{"watchdog: BUG: soft lockup - CPU#4000000 stuck for 22s! [a:1]", HOST_LOG_OTHER, 0},
	{"watchdog: BUG: soft lockup - CPU#", HOST_LOG_OTHER, 0},
	{"Watchdog detected hard LOCKUP on cpu x", HOST_LOG_OTHER, 0},
	{"split_lock trap", HOST_LOG_OTHER, 0},
	{"x/-7 took a split_lock trap", HOST_LOG_OTHER, 0},
	{"x/99999999999 took a split_lock trap", HOST_LOG_OTHER, 0},
	{"rcu: INFO: rcu_preempt self-detected stall on CPU", HOST_LOG_OTHER, 0},
	{"", HOST_LOG_OTHER, 0},
};

static void lines_are_understood(void **state)
{
	static struct host_log log;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct host_log_line *line;

		host_log_add(&log, (struct host_ns){(int64_t)i}, cases[i].text);
		line = host_log_get(&log, 0);
		print_message("  %s\n", cases[i].text);
		assert_int_equal(line->kind, cases[i].kind);
		assert_int_equal(line->t.ns, i);
		assert_int_equal(line->kind == HOST_LOG_LOCKUP ? line->cpu : line->pid,
				 cases[i].number);
		assert_string_equal(line->text, cases[i].text);
	}
}

static void the_newest_are_kept(void **state)
{
	static struct host_log log;
	char text[2 * HOST_LOG_TEXT];

	(void)state;
	assert_null(host_log_get(&log, 0));
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int64_t i = 0; i < HOST_LOG_MAX + 7; i++)
		host_log_add(&log, (struct host_ns){i}, text);
	for (size_t i = 0; i < HOST_LOG_MAX; i++)
		assert_int_equal(host_log_get(&log, i)->t.ns, HOST_LOG_MAX + 6 - (int64_t)i);
	assert_null(host_log_get(&log, HOST_LOG_MAX));
	assert_int_equal(strlen(host_log_get(&log, 0)->text), HOST_LOG_TEXT - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_understood),
		cmocka_unit_test(the_newest_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
