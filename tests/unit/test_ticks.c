// SPDX-License-Identifier: GPL-2.0-only
/* Tests late ticks: the host's part of their delay, and the rest. */
#include "host-collector/tables/ticks.h"
#include "tests/unit/model_script.h"

enum { TASK = 42, HOG = 500 };

#define TICK(T_US) IRQ(T_US, 0, VECTOR_ENTRY, TASK, VS_VECTOR_LOCAL_TIMER)

/* Ticks of 4 ms. The tick due at 16 ms comes 6 ms late; a hog has the pCPU for 4 ms of these. The
 * ticks due at 34 and 38 ms come in time. The tick due at 42 ms comes 3 ms late while the vCPU
 * runs. Then the CPU idles. */
static const struct timeline_event story[] = {
	SWITCH(HOST, 0, 0, 0, TID0, 0),
	SWITCH(VM, 1, 0, 0, TASK, 0),
	TICK(4000),
	TICK(8000),
	TICK(12000),
	SWITCH(HOST, 15000, 0, TID0, HOG, 0),
	SWITCH(HOST, 20000, 0, HOG, TID0, 0),
	TICK(22000),
	TICK(26000),
	TICK(30000),
	TICK(34000),
	TICK(38000),
	TICK(45000),
	SWITCH(VM, 46000, 0, TASK, 0, 1),
	SWITCH(VM, 400000, 0, 0, TASK, 0),
	TICK(401000),
	TICK(405000),
	SWITCH(HOST, 406000, 0, TID0, HOG, 0),
};

static struct ticks *ticks_of(uint32_t hz, const struct figures_options *options,
			      const struct timeline_event *events, size_t n)
{
	struct model *m = model_new();
	struct ticks *t = ticks_analysis.new(m, options);

	assert_non_null(t);
	script_vm(m, 1, "kvm");
	assert_int_equal(model_guest_tick(m, VM, hz), 0);
	script_run(m, events, n);
	model_finish(m);
	ticks_analysis.finish(t);
	assert_int_equal(ticks_analysis.error(t), 0);
	model_free(m);
	return t;
}

static void lateness_is_the_hosts_or_the_guests(void **unused)
{
	struct ticks *t = ticks_of(250, NULL, story, COUNT(story));
	const struct ticks_cpu *c = ticks_cpu(t, 0);

	(void)unused;
	assert_non_null(c);
	assert_int_equal(c->ticks, 9);
	assert_int_equal(c->interval_ns, 4000000);
	assert_int_equal(c->late.count, 2);
	assert_int_equal(c->late.sum_ns, 6000000 + 3000000);
	assert_int_equal(c->kept_ns, 4000000);
	assert_int_equal(c->off.count, 2);
	assert_int_equal(c->off.sum_ns, 2000000 + 3000000);
	assert_int_equal(c->unknown, 0);
	ticks_analysis.free(t);
}

static void shorter_ones_do_not_count(void **unused)
{
	struct ticks *t =
		ticks_of(250, &(struct figures_options){.than_ns = 2500000}, story, COUNT(story));

	(void)unused;
	assert_int_equal(ticks_cpu(t, 0)->late.count, 2);
	assert_int_equal(ticks_cpu(t, 0)->off.count, 1);
	ticks_analysis.free(t);
}

static void without_the_tick_rate_nothing_is_late(void **unused)
{
	struct ticks *t = ticks_of(0, NULL, story, COUNT(story));

	(void)unused;
	assert_int_equal(ticks_cpu(t, 0)->interval_ns, 0);
	assert_int_equal(ticks_cpu(t, 0)->late.count, 0);
	ticks_analysis.free(t);
}

static void without_the_host_the_cause_is_unknown(void **unused)
{
	struct timeline_event guest[COUNT(story)];
	struct ticks *t;
	size_t n = 0;

	(void)unused;
	for (size_t i = 0; i < COUNT(story); i++) {
		if (story[i].source == VM)
			guest[n++] = story[i];
	}
	t = ticks_of(250, NULL, guest, n);
	assert_int_equal(ticks_cpu(t, 0)->late.count, 2);
	assert_int_equal(ticks_cpu(t, 0)->off.count, 0);
	assert_int_equal(ticks_cpu(t, 0)->unknown, 2);
	ticks_analysis.free(t);
}

static void a_cpu_that_stopped_its_tick_is_not_late(void **unused)
{
	static const struct timeline_event sparse[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		SWITCH(VM, 1, 0, 0, TASK, 0),
		TICK(100000),
		TICK(1100000),
		TICK(2100000),
		TICK(3100000),
	};
	struct ticks *t = ticks_of(250, NULL, sparse, COUNT(sparse));

	(void)unused;
	assert_int_equal(ticks_cpu(t, 0)->late.count, 0);
	ticks_analysis.free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lateness_is_the_hosts_or_the_guests),
		cmocka_unit_test(shorter_ones_do_not_count),
		cmocka_unit_test(without_the_tick_rate_nothing_is_late),
		cmocka_unit_test(without_the_host_the_cause_is_unknown),
		cmocka_unit_test(a_cpu_that_stopped_its_tick_is_not_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
