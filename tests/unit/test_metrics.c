/* SPDX-License-Identifier: GPL-2.0-only */
/* Metrics: counters add up, the page keeps its form whatever a VM is called. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/metrics/metrics_text.h"

static void test_counts_below_a_power_of_two_are_exact(void **state)
{
	static const uint64_t values[] = {0, 1, 63, 64, 1023, 1024, 1025, 4095, 4096, 1u << 30};
	struct histogram h = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		assert_int_equal(histogram_add(&h, values[i]), 0);
	for (unsigned exponent = 6; exponent < 64; exponent++) {
		uint64_t below = 0;

		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
			below += values[i] < 1ull << exponent;
		assert_int_equal(histogram_below(&h, exponent), below);
	}
	histogram_fini(&h);
}

/* The page of one VM of that name; the caller frees it. */
static char *page_of(const char *name)
{
	struct metrics_vm vm = {.vm = 1, .name = name, .vcpus = 2};
	const struct metrics_source sources[] = {
		{.host = true, .vm = "", .delivered = 7, .lost = 3},
		{.vm = name,
		 .up = true,
		 .delivered = 5,
		 .clock_known = true,
		 .clock_error_s = 1e-6},
	};
	struct histogram times = {0};
	const struct metrics_pair pair = {
		.name = "msi", .times = &times, .over = 1, .uncounted = {4, 5, 6}};
	const struct metrics_vm_pair vm_pair = {name, &pair};
	const struct metrics_page page = {.vms = &vm,
					  .n_vms = 1,
					  .sources = sources,
					  .n_sources = 2,
					  .pairs = &vm_pair,
					  .n_pairs = 1};
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	vm.incidents[VERDICT_VMM_LOCK] = 4;
	assert_int_equal(histogram_add(&vm.delays[RUN_DELAY_WOKEN], 1000), 0);
	assert_int_equal(histogram_add(&vm.delays[RUN_DELAY_WOKEN], 3000), 0);
	assert_int_equal(histogram_add(&times, 2000000), 0);
	assert_int_equal(metrics_write(&page, to), 0);
	histogram_fini(&times);
	fclose(to);
	metrics_vm_fini(&vm);
	return text;
}

static void test_samples(void **state)
{
	static const char *const lines[] = {
		"vcpuscope_vcpus{vm=\"web1\"} 2\n",
		"vcpuscope_run_delay_seconds_bucket{vm=\"web1\",cause=\"wakeup\",le=\"1.024e-06\"} 1\n",
		"vcpuscope_run_delay_seconds_bucket{vm=\"web1\",cause=\"wakeup\",le=\"4.096e-06\"} 2\n",
		"vcpuscope_run_delay_seconds_bucket{vm=\"web1\",cause=\"wakeup\",le=\"+Inf\"} 2\n",
		"vcpuscope_run_delay_seconds_sum{vm=\"web1\",cause=\"wakeup\"} 4e-06\n",
		"vcpuscope_run_delay_seconds_count{vm=\"web1\",cause=\"wakeup\"} 2\n",
		"vcpuscope_incidents_total{vm=\"web1\",verdict=\"vmm_lock\"} 4\n",
		"vcpuscope_incidents_total{vm=\"web1\",verdict=\"vm_paused\"} 0\n",
		"vcpuscope_events_lost_total{side=\"host\",vm=\"\"} 3\n",
		"vcpuscope_agent_up{vm=\"web1\"} 1\n",
		"# TYPE vcpuscope_pair_seconds histogram\n",
		"vcpuscope_pair_seconds_bucket{vm=\"web1\",pair=\"msi\",le=\"+Inf\"} 1\n",
		"vcpuscope_pair_seconds_sum{vm=\"web1\",pair=\"msi\"} 0.002\n",
		"vcpuscope_pair_over_total{vm=\"web1\",pair=\"msi\"} 1\n",
		"vcpuscope_pair_uncounted_total{vm=\"web1\",pair=\"msi\",why=\"unpaired\"} 4\n",
		"vcpuscope_pair_uncounted_total{vm=\"web1\",pair=\"msi\",why=\"ambiguous\"} 6\n",
	};
	char *text = page_of("web1");

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (!strstr(text, lines[i]))
			fail_msg("%s is not in\n%s", lines[i], text);
	}
	free(text);
}

/* A name that would end the label, the line, or the terminal's patience. */
static void test_no_name_breaks_the_page(void **state)
{
	static const struct {
		const char *name, *label;
	} cases[] = {
		{"a\"} 1\nvcpuscope_vcpus{vm=\"b",
		 "{vm=\"a\\\"} 1\\\\nvcpuscope_vcpus{vm=\\\"b\"}"},
		{"back\\", "{vm=\"back\\\\\\\\\"}"},
		{"\x1b[2J", "{vm=\"\\\\x1b[2J\"}"},
		{"\xff", "{vm=\"\\\\xff\"}"},
	};
	char *plain = page_of("x");
	size_t lines = 0;

	(void)state;
	for (const char *c = plain; *c; c++)
		lines += *c == '\n';
	free(plain);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = page_of(cases[i].name);
		size_t n = 0;

		for (const char *c = text; *c; c++)
			n += *c == '\n';
		assert_int_equal(n, lines);
		if (!strstr(text, cases[i].label))
			fail_msg("%s is not in\n%s", cases[i].label, text);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_below_a_power_of_two_are_exact),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_no_name_breaks_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
