/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that there is a text for each tracepoint that a capture uses: the doctors print what is
 * lost without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/capture/tracepoint_losses.h"

static bool is_known(enum capture_kind side, const char *name)
{
	char lost[1024], begin[96];

	snprintf(begin, sizeof(begin), "%s: ", name);
	tracepoint_losses(side, name, lost, sizeof(lost));
	return !strncmp(lost, begin, strlen(begin)) && strlen(lost) > strlen(begin) + 10;
}

/* No text: without sched_switch there is no capture. */
static void each_tracepoint_of_the_catalogue_has_a_loss(void **state)
{
	size_t n, guest = 0, host = 0;
	const struct event_tracepoint *all = event_tracepoints(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const struct event_tracepoint *t = &all[i];
		/* Its newer name is reported instead. */
		const bool renamed = !strcmp(t->name, "kvm_ple_window");

		if (!strcmp(t->name, "sched_switch") || renamed)
			continue;
		if (t->users & BY_GUEST && ++guest && !is_known(CAPTURE_GUEST, t->name))
			fail_msg("guest: %s", t->name);
		if (t->users & (BY_HOST | BY_ROW) && ++host && !is_known(CAPTURE_HOST, t->name))
			fail_msg("host: %s", t->name);
	}
	assert_true(guest > 15);
	assert_true(host > 25);
	/* BPF programs that emit no event use these. */
	assert_true(is_known(CAPTURE_GUEST, "task_rename"));
	assert_true(is_known(CAPTURE_GUEST, "sched_process_exec"));
	assert_true(is_known(CAPTURE_HOST, "task_rename"));
	assert_false(is_known(CAPTURE_HOST, "irq_handler_entry"));
	assert_false(is_known(CAPTURE_HOST, "kvm"));
	assert_false(is_known(CAPTURE_HOST, "kvm_m"));
}

static void tracepoints_with_one_loss_are_named_together(void **state)
{
	char lost[1024], small[24];

	(void)state;
	tracepoint_losses(CAPTURE_GUEST, "", lost, sizeof(lost));
	assert_string_equal(lost, "");
	tracepoint_losses(CAPTURE_GUEST,
			  "irq_handler_entry, sched_process_exit, irq_handler_exit, newer_one",
			  lost, sizeof(lost));
	assert_ptr_equal(strstr(lost, "irq_handler_entry, irq_handler_exit: handlers of devices"),
			 lost);
	assert_non_null(strstr(lost, "; sched_process_exit: ends of tasks"));
	assert_non_null(strstr(lost, "; newer_one"));
	assert_null(strstr(strstr(lost, "irq_handler_exit") + 1, "irq_handler_exit"));
	/* A text that does not fit is cut. */
	tracepoint_losses(CAPTURE_GUEST, "irq_handler_entry, irq_handler_exit", small,
			  sizeof(small));
	assert_string_equal(small, "irq_handler_entry, irq_");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_tracepoint_of_the_catalogue_has_a_loss),
		cmocka_unit_test(tracepoints_with_one_loss_are_named_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
