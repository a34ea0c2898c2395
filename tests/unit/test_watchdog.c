/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests soft lockup lines of the guest's log: they are parsed and joined to their stalls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/analyze/stall/watchdog.h"

static const struct parse_case {
	const char *text;
	bool found;
	unsigned cpu, stuck_s;
	int32_t pid;
	const char *comm;
} cases[] = {
	{"watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [stress-ng:1234]", true, 3, 22, 1234,
	 "stress-ng"},
	{"NMI watchdog: BUG: soft lockup - CPU#0 stuck for 23s! [swapper/0:0]", true, 0, 23, 0,
	 "swapper/0"},
	{"watchdog: BUG: soft lockup - CPU#1 stuck for 9s! [a]:b[:7]", true, 1, 9, 7, "a]:b["},
	{"watchdog: BUG: soft lockup - CPU#1 stuck for 9s! [0123456789abcdefghij:7]", true, 1, 9, 7,
	 "0123456789abcde"},
	{"watchdog: BUG: soft lockup - CPU#99999 stuck for 9s! [a:7]", false, 0, 0, 0, ""},
	{"watchdog: BUG: soft lockup - CPU#1 stuck for 9s!", false, 0, 0, 0, ""},
	{"watchdog: BUG: soft lockup - CPU#1 stuck for 9s! [a]", false, 0, 0, 0, ""},
	{"watchdog: BUG: soft lockup - CPU#1 stuck for 9s! [a:-7]", false, 0, 0, 0, ""},
	{"watchdog: BUG: soft lockup - CPU#1 stuck for 9s! ]a:7[", false, 0, 0, 0, ""},
	{"rcu: INFO: rcu_preempt self-detected stall on CPU", false, 0, 0, 0, ""},
	{"", false, 0, 0, 0, ""},
};

static void lines_are_read(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct parse_case *c = &cases[i];
		struct report_watchdog w = {0};

		assert_int_equal(watchdog_parse(c->text, &w), c->found);
		if (!c->found)
			continue;
		assert_int_equal(w.cpu, c->cpu);
		assert_int_equal(w.stuck_s, c->stuck_s);
		assert_int_equal(w.pid, c->pid);
		assert_string_equal(w.comm, c->comm);
		assert_int_equal(w.incident, -1);
	}
}

static struct incident stall(uint64_t begin_s, uint64_t end_s, enum verdict verdict, bool host,
			     int32_t culprit)
{
	struct incident i = {.vm = 1,
			     .guest_cpu = 2,
			     .dmesg_known = true,
			     .begin_dmesg_ns = begin_s * 1000000000,
			     .end_dmesg_ns = end_s * 1000000000,
			     .verdict = verdict,
			     .n_culprits = 1};

	i.culprits[0].host = host;
	i.culprits[0].pid = culprit;
	return i;
}

static void the_guest_is_told_whom_it_blames_wrongly(void **unused)
{
	struct incident incidents[] = {
		stall(100, 104, VERDICT_VM_PAUSED, true, 50),
		stall(200, 230, VERDICT_GUEST_SPIN, false, 50),
		stall(300, 330, VERDICT_UNDETERMINED, false, 50),
	};
	struct report_watchdog lines[] = {
		{.vm = 1, .cpu = 2, .pid = 50, .stuck_s = 4, .dmesg_us = 105000000, .incident = -1},
		{.vm = 1,
		 .cpu = 2,
		 .pid = 50,
		 .stuck_s = 22,
		 .dmesg_us = 222000000,
		 .incident = -1},
		{.vm = 1,
		 .cpu = 2,
		 .pid = 51,
		 .stuck_s = 30,
		 .dmesg_us = 331000000,
		 .incident = -1},
		{.vm = 1,
		 .cpu = 1,
		 .pid = 50,
		 .stuck_s = 22,
		 .dmesg_us = 222000000,
		 .incident = -1},
		{.vm = 2,
		 .cpu = 2,
		 .pid = 50,
		 .stuck_s = 22,
		 .dmesg_us = 222000000,
		 .incident = -1},
		{.vm = 1, .cpu = 2, .pid = 50, .stuck_s = 22, .dmesg_us = 99000000, .incident = -1},
		{.vm = 1, .cpu = 2, .pid = 50, .stuck_s = 4, .dmesg_us = 129000000, .incident = -1},
	};
	static const struct {
		int incident;
		enum watchdog_opinion opinion;
	} expected[] = {{0, WATCHDOG_WRONG},
			{1, WATCHDOG_RIGHT},
			{2, WATCHDOG_UNPROVEN},
			{-1, 0},
			{-1, 0},
			{-1, 0},
			{-1, 0}};
	struct report r = {
		.n_incidents = 3, .incidents = incidents, .n_watchdogs = 7, .watchdogs = lines};

	(void)unused;
	watchdog_join(&r);
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(lines[i].incident, expected[i].incident);
		assert_int_equal(lines[i].opinion, expected[i].opinion);
	}
}

/* 12 s of a pause, and 24 ms after it another stall begins, in which the guest prints its line. */
static void the_stall_that_fills_the_lines_span_is_meant(void **unused)
{
	struct incident incidents[] = {
		stall(100, 112, VERDICT_VM_PAUSED, true, 50),
		stall(112, 113, VERDICT_UNDETERMINED, false, 50),
		stall(112, 113, VERDICT_GUEST_SPIN, false, 50),
	};
	struct report_watchdog line = {
		.vm = 1, .cpu = 2, .pid = 50, .stuck_s = 12, .dmesg_us = 112048000, .incident = -1};
	struct report r = {
		.n_incidents = 3, .incidents = incidents, .n_watchdogs = 1, .watchdogs = &line};

	(void)unused;
	incidents[1].begin_dmesg_ns = 112024000000;
	incidents[1].end_dmesg_ns = 112832000000;
	incidents[2].boot = 1; /* the same time of another boot's clock */
	watchdog_join(&r);
	assert_int_equal(line.incident, 0);
	assert_int_equal(line.opinion, WATCHDOG_WRONG);
	/* Without the pause, a stall of 24 ms does not explain 12 s. */
	incidents[0].vm = 7;
	line.incident = -1;
	watchdog_join(&r);
	assert_int_equal(line.incident, -1);
	/* Times that are known no better prove nothing. */
	incidents[0].vm = 1;
	incidents[0].dmesg_err_ns = 9000000000;
	watchdog_join(&r);
	assert_int_equal(line.incident, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_read),
		cmocka_unit_test(the_guest_is_told_whom_it_blames_wrongly),
		cmocka_unit_test(the_stall_that_fills_the_lines_span_is_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
