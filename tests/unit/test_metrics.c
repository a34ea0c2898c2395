/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests metrics: counters add up, and the page stays valid for any name of a VM. */
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

/* The page of the sums of a host whose exits took these times; the caller frees it. */
static char *host_page_of(const uint64_t *ns, size_t n)
{
	static const struct metrics_host host = {.kernel = "6.1\"",
						 .cpu_model = "",
						 .microcode = "0x1",
						 .n_labels = 1,
						 .labels = {{"zone", "a"}}};
	struct metrics_sum sum = {.vms = 2, .agents = 2, .agents_up = 1, .lost = {3, 4}};
	const struct metrics_page page = {.sum = &sum, .host = &host};
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(histogram_add(&sum.vm.exits, ns[i]), 0);
	assert_int_equal(metrics_write(&page, to), 0);
	fclose(to);
	metrics_vm_fini(&sum.vm);
	return text;
}

/* histogram_quantile() of Prometheus, of the buckets on a page: linear within a bucket. */
static double quantile_of(const char *page, double share)
{
	static const char bucket[] = "vcpuscope_host_exit_handling_seconds_bucket{le=\"";
	double below = 0, begin = 0, total = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (const char *at = strstr(page, bucket); at; at = strstr(at + 1, bucket)) {
			const double end = strtod(at + sizeof(bucket) - 1, NULL);
			const double n = strtod(strstr(at, "} ") + 2, NULL);

			if (!pass) {
				total = n;
			} else if (n >= share * total) {
				return begin +
				       (end - begin) * (share * total - below) / (n - below);
			} else {
				begin = end;
				below = n;
			}
		}
	}
	return INFINITY;
}

/* Whatever the values are: all at one place, at the edges of buckets, spread. */
static void test_quantiles_of_the_host_are_within_a_tenth(void **state)
{
	uint64_t seed = 1, values[1000];

	(void)state;
	for (int round = 0; round < 400; round++) {
		const uint64_t base = (uint64_t)(1100 * pow(1.0347, round)); /* 1.1 us to 0.9 s */
		const int spread = round % 4;
		double exact, found;
		char *page;

		for (size_t i = 0; i < 1000; i++) {
			seed = seed * 6364136223846793005 + 1442695040888963407;
			values[i] = base -
				    (spread ? (seed >> 33) % (base >> (4 * (spread - 1))) / 20 : 0);
			if (i >= 980) /* p99 is among these */
				values[i] = base + i % (1 + (uint64_t)spread);
		}
		page = host_page_of(values, 1000);
		exact = (double)base / 1e9;
		found = quantile_of(page, 0.99);
		if (fabs(found / exact - 1) > 0.1)
			fail_msg("p99 is %.9f, the page says %.9f", exact, found);
		free(page);
	}
}

static void test_sums_of_the_host(void **state)
{
	static const uint64_t values[] = {1023, 1024, 1120, 1u << 30};
	static const char *const lines[] = {
		"vcpuscope_host_info{kernel=\"6.1\\\"\",cpu_model=\"\",microcode=\"0x1\","
		"label_zone=\"a\"} 1\n",
		"vcpuscope_host_vms 2\n",
		"vcpuscope_host_agents_up 1\n",
		"vcpuscope_host_events_lost_total{side=\"guest\"} 3\n",
		"vcpuscope_host_stalls_total 0\n",
		"vcpuscope_host_exit_handling_seconds_bucket{le=\"1.024e-06\"} 1\n",
		"vcpuscope_host_exit_handling_seconds_bucket{le=\"1.12e-06\"} 2\n",
		"vcpuscope_host_exit_handling_seconds_bucket{le=\"1.216e-06\"} 3\n",
		"vcpuscope_host_exit_handling_seconds_bucket{le=\"1.073741824\"} 3\n",
		"vcpuscope_host_exit_handling_seconds_bucket{le=\"+Inf\"} 4\n",
		"vcpuscope_host_exit_handling_seconds_count 4\n",
	};
	char *text = host_page_of(values, 4);

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (!strstr(text, lines[i]))
			fail_msg("%s is not in\n%s", lines[i], text);
	}
	assert_null(strstr(text, "verdict="));
	assert_null(strstr(text, "vm=\""));
	free(text);
}

/* Reasons beyond the limit are summed as "other", in whatever order VMs come. */
static void test_sums_add_up(void **state)
{
	struct metrics_vm sum = {0}, vm = {.vcpus = 2};

	(void)state;
	vm.incidents[VERDICT_VMM_LOCK] = 3;
	assert_int_equal(histogram_add(&vm.delays[RUN_DELAY_WOKEN], 5000), 0);
	for (int i = 0; i < 40; i++) {
		vm.n_reasons = 1;
		snprintf(vm.reasons[0].name, sizeof(vm.reasons[0].name), "REASON_%d", i % 39);
		vm.reasons[0].exits = 1;
		assert_int_equal(metrics_vm_add(&sum, &vm), 0);
	}
	assert_int_equal(sum.vcpus, 80);
	assert_int_equal(sum.incidents[VERDICT_VMM_LOCK], 120);
	assert_int_equal(sum.delays[RUN_DELAY_WOKEN].count, 40);
	assert_int_equal(sum.n_reasons, METRICS_REASONS + 1);
	assert_string_equal(sum.reasons[METRICS_REASONS].name, "other");
	assert_int_equal(sum.reasons[METRICS_REASONS].exits, 39 - METRICS_REASONS);
	assert_int_equal(sum.reasons[0].exits, 2);
	metrics_vm_fini(&sum);
	metrics_vm_fini(&vm);
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
		"vcpuscope_stalls_total{vm=\"web1\"} 4\n",
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
	assert_null(strstr(text, "verdict=\"vm_paused\"")); /* never occurred */
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
		cmocka_unit_test(test_sums_of_the_host),
		cmocka_unit_test(test_sums_add_up),
		cmocka_unit_test(test_quantiles_of_the_host_are_within_a_tenth),
		cmocka_unit_test(test_no_name_breaks_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
