/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests when the daemon switches from detail to summary, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "host-collector/daemon/governor.h"

enum { TICK_MS = 100 };

struct scene {
	struct governor g;
	uint64_t now_ms, events;
};

/* Runs at `rate` events/s for `ms`, or until it advises something; returns that. */
static enum governor_advice run(struct scene *s, uint64_t rate, uint64_t ms)
{
	for (uint64_t end = s->now_ms + ms; s->now_ms < end;) {
		enum governor_advice advice;

		s->now_ms += TICK_MS;
		s->events += rate * TICK_MS / 1000;
		advice = governor_tick(&s->g, s->now_ms, s->events);
		if (advice != GOVERNOR_STAY)
			return advice;
	}
	return GOVERNOR_STAY;
}

static void test_what_is_within_the_budget_stays(void **state)
{
	struct scene s = {.now_ms = 5000, .events = 1000000};

	(void)state;
	governor_begin(&s.g, 10000, s.now_ms, s.events);
	assert_int_equal(run(&s, 9900, 100000), GOVERNOR_STAY);
	for (int i = 0; i < 50; i++) { /* a second's burst is none of its business */
		assert_int_equal(run(&s, 15000, 1000), GOVERNOR_STAY);
		assert_int_equal(run(&s, 1000, 1000), GOVERNOR_STAY);
	}
	governor_begin(&s.g, 0, s.now_ms, s.events);
	assert_int_equal(run(&s, 1000000000, 10000), GOVERNOR_STAY);
}

static void test_what_is_over_it_sheds_and_comes_back_later_each_time(void **state)
{
	struct scene s = {.now_ms = 5000};
	uint64_t pause_before = 0, begin;

	(void)state;
	governor_begin(&s.g, 10000, s.now_ms, s.events);
	for (int i = 0; i < 5; i++) {
		begin = s.now_ms;
		assert_int_equal(run(&s, 20000, 10000), GOVERNOR_SHED);
		assert_in_range(s.now_ms - begin, 1500, 3100);
		begin = s.now_ms;
		assert_int_equal(run(&s, 50000, 1000000), GOVERNOR_RESTORE);
		assert_true(s.now_ms - begin > pause_before * 3 / 2);
		pause_before = s.now_ms - begin;
	}
	assert_int_equal(s.g.sheds, 5);
	assert_true(pause_before <= 610000);
	/* After a calm time it is short again. */
	assert_int_equal(run(&s, 5000, 120000), GOVERNOR_STAY);
	assert_int_equal(run(&s, 20000, 10000), GOVERNOR_SHED);
	begin = s.now_ms;
	assert_int_equal(run(&s, 0, 1000000), GOVERNOR_RESTORE);
	assert_in_range(s.now_ms - begin, 29000, 32000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_within_the_budget_stays),
		cmocka_unit_test(test_what_is_over_it_sheds_and_comes_back_later_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
