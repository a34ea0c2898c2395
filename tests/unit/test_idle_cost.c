/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the cost of an idle VM: it uses only the necessary memory of its tables, and a
 * continuing run interval costs in proportion to the vCPUs that the VM has, not to the possible
 * number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/tables/activity.h"
#include "host-collector/analyze/stall/hints.h"
#include "host-collector/metrics/metrics.h"
#include "host-collector/engine/live.h"

enum { VMS = 4, LOOKS = 3, ROWS = 16, VM_BYTES_MAX = 8 << 20, FILLS = 400, SMALL_BYTES = 1 << 20 };

static uint64_t resident_bytes(void)
{
	unsigned long long size, resident;
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llu %llu", &size, &resident), 2);
	fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void on_incident(void *context, const struct report *report)
{
	(void)context, (void)report;
}

static void on_ongoing(void *context, const struct incident *incident, const char *vm_name)
{
	(void)context, (void)incident, (void)vm_name;
}

static void on_line(void *context, const char *line)
{
	(void)context, (void)line;
}

struct idle_vm {
	struct live *live;
	struct activity *activity;
	struct metrics *metrics;
};

static void an_idle_vm_touches_few_pages(void **state)
{
	const struct live_options options = {.than_ns = 100000000,
					     .incident = on_incident,
					     .ongoing = on_ongoing,
					     .line = on_line};
	const uint64_t before = resident_bytes();
	struct idle_vm vms[VMS];
	struct activity_row rows[ROWS];
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < VMS; i++) {
		vms[i].live = live_new(&options);
		assert_non_null(vms[i].live);
		vms[i].activity = activity_new(live_model(vms[i].live));
		vms[i].metrics = metrics_new(live_model(vms[i].live), live_chains(vms[i].live));
		assert_non_null(vms[i].activity);
		assert_non_null(vms[i].metrics);
		for (int k = 0; k < LOOKS; k++)
			assert_int_equal(activity_look(vms[i].activity, rows, ROWS), 0);
	}
	bytes = (resident_bytes() - before) / VMS;
	if (bytes > VM_BYTES_MAX)
		fail_msg("%llu KiB for each", (unsigned long long)bytes >> 10);
	for (size_t i = 0; i < VMS; i++) {
		live_free(vms[i].live);
		activity_free(vms[i].activity);
		metrics_free(vms[i].metrics);
	}
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Less than it takes to clear 1 MiB, on whatever machine. */
static void a_stretch_costs_by_the_vcpus_that_there_are(void **state)
{
	static volatile char small[SMALL_BYTES];
	struct stall_facts facts = {
		.vm = 1, .vcpu_known = true, .begin = {1000000000}, .end = {2000000000}};
	const struct vcpu_span span = {
		.vm = 1, .state = VCPU_GUEST, .begin = {1000000000}, .end = {1500000000}};
	struct model *model = model_new();
	struct hints *hints = hints_new();
	uint64_t began, fills_ns, clears_ns;

	(void)state;
	assert_non_null(model);
	assert_non_null(hints);
	hints_vcpu(hints, &span);
	memset((void *)small, 1, sizeof(small));
	began = thread_ns();
	for (int i = 0; i < FILLS; i++)
		hints_fill(hints, model, &facts);
	fills_ns = thread_ns() - began;
	began = thread_ns();
	for (int i = 0; i < FILLS; i++)
		memset((void *)small, i, sizeof(small));
	clears_ns = thread_ns() - began;
	if (fills_ns > clears_ns)
		fail_msg("%llu ns each, 1 MiB is cleared in %llu ns",
			 (unsigned long long)fills_ns / FILLS,
			 (unsigned long long)clears_ns / FILLS);
	hints_free(hints);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_vm_touches_few_pages),
		cmocka_unit_test(a_stretch_costs_by_the_vcpus_that_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
