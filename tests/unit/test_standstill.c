/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that no stamp is inside a pause of its VM, unless its bound proves that it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host-collector/timeline/standstill.h"

static struct standstills with_one(uint64_t begin, uint64_t end)
{
	struct standstills s = {0};

	standstills_note(&s, (struct host_tsc){begin}, true);
	standstills_note(&s, (struct host_tsc){end}, false);
	return s;
}

static void expect(const struct standstills *s, uint64_t at, uint64_t err, uint64_t becomes,
		   uint64_t err_becomes)
{
	struct host_tsc t = {at};

	standstills_evade(s, &t, &err);
	assert_int_equal(t.ticks, becomes);
	assert_int_equal(err, err_becomes);
}

static void a_stamp_inside_goes_to_the_nearer_edge(void **state)
{
	struct standstills s = with_one(1000, 2000);

	(void)state;
	expect(&s, 1100, 900, 1000, 1000);
	expect(&s, 1900, 900, 2000, 1000);
}

static void what_lies_outside_stays(void **state)
{
	struct standstills s = with_one(1000, 2000);

	(void)state;
	expect(&s, 999, 900, 999, 900);
	expect(&s, 1000, 900, 1000, 900);
	expect(&s, 2000, 900, 2000, 900);
	expect(&s, 2001, 900, 2001, 900);
}

static void a_stamp_that_is_certain_stays(void **state)
{
	struct standstills s = with_one(1000, 2000);

	(void)state;
	expect(&s, 1100, 99, 1100, 99);
	expect(&s, 1100, 100, 1000, 200);
	expect(&s, 1100, UINT64_MAX, 1000, UINT64_MAX);
}

/* A word that is missing ends or begins nothing. */
static void half_a_standstill_is_none(void **state)
{
	struct standstills s = {0};

	(void)state;
	standstills_note(&s, (struct host_tsc){500}, false);
	standstills_note(&s, (struct host_tsc){1000}, true);
	expect(&s, 1500, 900, 1500, 900);
	standstills_note(&s, (struct host_tsc){1200}, true);
	standstills_note(&s, (struct host_tsc){2000}, false);
	expect(&s, 1100, 900, 1100, 900);
	expect(&s, 1300, 900, 1200, 1000);
}

static void the_newest_are_remembered(void **state)
{
	struct standstills s = {0};

	(void)state;
	for (uint64_t i = 1; i <= STANDSTILLS_MAX + 1; i++) {
		standstills_note(&s, (struct host_tsc){i * 1000}, true);
		standstills_note(&s, (struct host_tsc){i * 1000 + 500}, false);
	}
	expect(&s, 1100, 400, 1100, 400);
	for (uint64_t i = 2; i <= STANDSTILLS_MAX + 1; i++)
		expect(&s, i * 1000 + 100, 400, i * 1000, 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stamp_inside_goes_to_the_nearer_edge),
		cmocka_unit_test(what_lies_outside_stays),
		cmocka_unit_test(a_stamp_that_is_certain_stays),
		cmocka_unit_test(half_a_standstill_is_none),
		cmocka_unit_test(the_newest_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
