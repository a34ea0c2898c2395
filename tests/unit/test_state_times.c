/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that times that do not add up are reported with their numbers, that their incident loses
 * its verdict, and that no other error is hidden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "host-collector/analyze/stall/state_times.h"
#include "host-collector/view/finding_text.h"
#include "host-collector/view/json.h"
#include "host-collector/view/text.h"

static struct incident stall(int64_t begin, int64_t end)
{
	struct incident i = {.vm = 1,
			     .begin = {begin},
			     .end = {end},
			     .verdict = VERDICT_GUEST_SPIN,
			     .runner_up = VERDICT_VM_PAUSED,
			     .confidence = CONFIDENCE_DECIDED,
			     .because = {{.kind = FINDING_TASK_KEPT_CPU}}};

	i.breakdown_ns[VCPU_GUEST] = end - begin;
	return i;
}

static void what_adds_up_keeps_its_verdict(void **state)
{
	struct incident i = stall(100, 300);

	(void)state;
	incident_verify(&i);
	assert_false(i.inconsistent);
	assert_int_equal(i.verdict, VERDICT_GUEST_SPIN);
	assert_int_equal(i.confidence, CONFIDENCE_DECIDED);
	assert_int_equal(i.because[0].kind, FINDING_TASK_KEPT_CPU);
}

static void what_does_not_add_up_says_its_real_sum(void **state)
{
	struct incident i = stall(100, 300);

	(void)state;
	i.breakdown_ns[VCPU_BLOCKED] = 7;
	incident_verify(&i);
	assert_true(i.inconsistent);
	assert_int_equal(i.verdict, VERDICT_UNDETERMINED);
	assert_int_equal(i.runner_up, VERDICT_UNDETERMINED);
	assert_int_equal(i.confidence, CONFIDENCE_UNDETERMINED);
	assert_non_null(strstr(because_text(&i).text, "its states sum to 207 ns, 200 ns passed"));
}

static void a_negative_state_is_found_though_the_sum_is_right(void **state)
{
	struct incident i = stall(100, 300);

	(void)state;
	i.breakdown_ns[VCPU_GUEST] = 262;
	i.breakdown_ns[VCPU_UNKNOWN] = -62;
	incident_verify(&i);
	assert_true(i.inconsistent);
	assert_non_null(strstr(because_text(&i).text,
			       "state unknown has -62 ns (all states sum to 200 ns, "
			       "200 ns passed)"));
}

static char *written(const struct report *r, bool json)
{
	struct text_options plain = {.colour = false};
	size_t bytes;
	char *text = NULL;
	FILE *to = open_memstream(&text, &bytes);

	if (json)
		json_report_write(r, false, to);
	else
		text_report_write(r, &plain, to);
	fclose(to);
	return text;
}

static void the_others_are_reported_beside_it(void **state)
{
	struct incident all[] = {stall(100, 300), stall(400, 600), stall(700, 900)};
	struct report r = {.begin = {0},
			   .end = {1000},
			   .n_incidents = 3,
			   .incidents = all,
			   .threshold_ns = 100};
	struct finding wrong[STATE_TIMES_FINDINGS];
	char *text;

	(void)state;
	assert_int_equal(report_imbalances(&r, wrong), 0);
	all[1].breakdown_ns[VCPU_HALTED] = -3;
	incident_verify(&all[1]);
	assert_int_equal(report_imbalances(&r, wrong), 1);
	assert_string_equal(finding_text(wrong, STATE_TIMES_FINDINGS).text,
			    "stall 2 of the report, on vCPU 0 of VM : state halted has -3 ns (all "
			    "states sum to 197 ns, 200 ns passed)");
	text = written(&r, false);
	assert_non_null(strstr(text, "3 stalls"));
	assert_non_null(strstr(text, "a bug of vcpuscope"));
	assert_non_null(strstr(text, "guest_spin (decided)"));
	free(text);
	text = written(&r, true);
	assert_non_null(strstr(text, "inconsistent"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_adds_up_keeps_its_verdict),
		cmocka_unit_test(what_does_not_add_up_says_its_real_sum),
		cmocka_unit_test(a_negative_state_is_found_though_the_sum_is_right),
		cmocka_unit_test(the_others_are_reported_beside_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
