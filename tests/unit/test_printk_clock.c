/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests a guest's printk clock: the interval must contain the true time, also around a step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "host-collector/timeline/printk_clock.h"

static const uint64_t hz = 2500000000, step_ns = 700000000;
static const double true_ns_per_tick = 0.4 * (1 + 40e-6);

/* The printk clock was stepped back when the stream clock stood at `step_at`. */
static uint64_t truth(uint64_t at, uint64_t step_at)
{
	return (uint64_t)((double)at * true_ns_per_tick) - (at >= step_at ? step_ns : 0);
}

static void add(struct printk_clock *c, uint64_t at, uint64_t step_at)
{
	const struct message_dmesg_point p = {
		.known = true, .time = at, .ns = truth(at, step_at), .err = 2000};

	assert_int_equal(printk_clock_add(c, &p), 0);
}

static uint64_t check(const struct printk_clock *c, uint64_t at, uint64_t step_at)
{
	uint64_t ns, err, expected = truth(at, step_at);

	assert_true(printk_clock_at(c, NULL, 0, hz, at, &ns, &err));
	assert_true(ns <= expected + err && expected <= ns + err);
	return err;
}

static void nothing_is_known_without_a_point(void **state)
{
	struct printk_clock c = {0};
	uint64_t ns, err;

	(void)state;
	assert_false(printk_clock_at(&c, NULL, 0, hz, hz, &ns, &err));
	add(&c, 10 * hz, UINT64_MAX);
	assert_false(printk_clock_at(&c, NULL, 0, 0, hz, &ns, &err));
	printk_clock_clear(&c);
	assert_false(printk_clock_at(&c, NULL, 0, hz, hz, &ns, &err));
}

static void one_point_goes_by_the_nominal_rate(void **state)
{
	struct printk_clock c = {0};

	(void)state;
	add(&c, 10 * hz, UINT64_MAX);
	check(&c, 11 * hz, UINT64_MAX);
	check(&c, 9 * hz, UINT64_MAX);
	printk_clock_clear(&c);
}

/* More points than are kept, and a step in the middle of them. */
static void the_interval_holds_the_truth(void **state)
{
	const uint64_t step_at = 1500 * hz + hz / 3;
	struct printk_clock c = {0};

	(void)state;
	for (uint64_t s = 1; s <= 3000; s++)
		add(&c, s * hz, step_at);
	for (unsigned i = 0; i < 20000; i++) {
		const uint64_t at = hz + (uint64_t)i * (2999 * hz / 20000);
		const uint64_t err = check(&c, at, step_at);

		if (at < 1400 * hz || at > 1600 * hz)
			assert_true(err < 100000);
		else
			assert_true(err < step_ns);
	}
	printk_clock_clear(&c);
}

/* The VM is paused between two points: a clock that stops then, and one that does not. */
static void a_pause_widens_nothing(void **state)
{
	const struct printk_pause pause = {100 * hz + hz / 4, 107 * hz + hz / 2};

	(void)state;
	for (int stops = 0; stops <= 1; stops++) {
		struct printk_clock c = {0};

		for (uint64_t s = 90; s <= 120; s++) {
			uint64_t at = s * hz, still = 0;

			if (at > pause.from && at < pause.until)
				continue;
			if (stops && at >= pause.until)
				still = pause.until - pause.from;
			assert_int_equal(
				printk_clock_add(&c,
						 &(struct message_dmesg_point){
							 .known = true,
							 .time = at,
							 .ns = truth(at - still, UINT64_MAX),
							 .err = 2000}),
				0);
		}
		for (uint64_t at = 99 * hz; at < 110 * hz; at += hz / 7) {
			uint64_t still = 0, ns, err, expected;

			if (stops && at > pause.from)
				still = (at < pause.until ? at : pause.until) - pause.from;
			expected = truth(at - still, UINT64_MAX);
			assert_true(printk_clock_at(&c, &pause, 1, hz, at, &ns, &err));
			assert_true(ns <= expected + err && expected <= ns + err);
			assert_true(err < 100000);
		}
		printk_clock_clear(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_without_a_point),
		cmocka_unit_test(one_point_goes_by_the_nominal_rate),
		cmocka_unit_test(the_interval_holds_the_truth),
		cmocka_unit_test(a_pause_widens_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
