// SPDX-License-Identifier: GPL-2.0-only
/* Tests the delay of the daemon's loop, with and without the time for which its thread waited
 * for a CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host-collector/daemon/vitals.h"

enum { PERIOD_MS = 100, MS = 1000000 };

static struct vitals read_of(const struct lag_meter *m)
{
	struct vitals v;

	vitals_read(m, &v);
	return v;
}

static void a_wait_for_a_cpu_is_not_the_daemons(void **state)
{
	struct lag_meter m = {0};

	(void)state;
	lag_meter_tick(&m, 1000, PERIOD_MS, 700 * MS); /* waited before it began */
	assert_int_equal(read_of(&m).lag_ever_ms, 0);
	/* 80 ms late, 30 ms of them without a CPU. */
	lag_meter_tick(&m, 1180, PERIOD_MS, 730 * MS);
	assert_int_equal(read_of(&m).lag_ever_ms, 80);
	assert_int_equal(read_of(&m).lag_own_ever_ms, 50);
	/* 200 ms late, all of them without a CPU: the delay grows, the own one does not. */
	lag_meter_tick(&m, 1480, PERIOD_MS, 1030 * MS);
	assert_int_equal(read_of(&m).lag_ever_ms, 200);
	assert_int_equal(read_of(&m).lag_own_ever_ms, 50);
	/* A kernel without schedstat says 0: nothing is subtracted. */
	m = (struct lag_meter){0};
	lag_meter_tick(&m, 1000, PERIOD_MS, 0);
	lag_meter_tick(&m, 1160, PERIOD_MS, 0);
	assert_int_equal(read_of(&m).lag_own_ever_ms, 60);
}

static void the_longest_delay_of_late_is_forgotten(void **state)
{
	struct lag_meter m = {0};
	uint64_t now = 20000;

	(void)state;
	lag_meter_tick(&m, now, PERIOD_MS, 0);
	lag_meter_tick(&m, now += PERIOD_MS + 70, PERIOD_MS, 0);
	assert_int_equal(read_of(&m).lag_max_ms, 70);
	assert_int_equal(read_of(&m).lag_own_max_ms, 70);
	for (int i = 0; i < 250; i++)
		lag_meter_tick(&m, now += PERIOD_MS, PERIOD_MS, 0);
	assert_int_equal(read_of(&m).lag_max_ms, 0);
	assert_int_equal(read_of(&m).lag_own_max_ms, 0);
	assert_int_equal(read_of(&m).lag_ever_ms, 70);
}

static void the_run_delay_of_this_thread_is_read(void **state)
{
	const uint64_t before = run_delay_read();

	(void)state;
	assert_true(before < 3600ull * 1000 * MS);
	assert_true(run_delay_read() >= before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_for_a_cpu_is_not_the_daemons),
		cmocka_unit_test(the_longest_delay_of_late_is_forgotten),
		cmocka_unit_test(the_run_delay_of_this_thread_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
