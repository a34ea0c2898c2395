/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests `clock eval`: it computes all clocks of one instant, and refuses malformed parameters.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "clock/eval.h"

static const struct {
	const char *name;
	enum clock_eval_from from;
	enum clock_eval_inverse inverse;
	uint64_t value;
	int result;
	uint64_t host, guest, kvmclock, span;
} evals[] = {
	{"host", CLOCK_EVAL_HOST_TSC, CLOCK_EVAL_FIRST, 3000000000, 0, 3000000000, 2499999994,
	 999999964, 0},
	{"kvmclock, first", CLOCK_EVAL_KVMCLOCK, CLOCK_EVAL_FIRST, 999999965, 0, 3000000002,
	 2499999996, 999999965, 4},
	{"kvmclock, last", CLOCK_EVAL_KVMCLOCK, CLOCK_EVAL_LAST, 999999965, 0, 3000000006,
	 2499999999, 999999965, 4},
	{"guest", CLOCK_EVAL_GUEST_TSC, CLOCK_EVAL_FIRST, 2499999994, 0, 2999999999, 2499999994,
	 999999964, 1},
	{"guest TSC that 2^64 host ticks do not reach", CLOCK_EVAL_GUEST_TSC, CLOCK_EVAL_FIRST,
	 (uint64_t)-7, -ERANGE, 0, 0, 0, 0},
};

static void eval_gives_every_clock_of_one_instant(void **state)
{
	const struct clock_params params = {
		.scaling = {234562480592213, 48, (uint64_t)-5},
		.has_pvclock = true,
		.pvclock = {100, 7, 3435973836, -1, 1},
	};
	struct clock_eval_request none = {.from = CLOCK_EVAL_KVMCLOCK};
	struct clock_eval_result result;

	(void)state;
	for (size_t i = 0; i < sizeof(evals) / sizeof(evals[0]); i++) {
		const struct clock_eval_request request = {params, evals[i].from, evals[i].inverse,
							   evals[i].value};

		assert_int_equal(clock_eval(&request, &result), evals[i].result);
		if (evals[i].result)
			continue;
		if (result.host.ticks != evals[i].host || result.guest.ticks != evals[i].guest ||
		    result.kvmclock.ns != evals[i].kvmclock || result.span_ticks != evals[i].span)
			fail_msg("%s", evals[i].name);
	}
	assert_int_equal(clock_eval(&none, &result), -EINVAL);
}

static void parameters_are_read_strictly(void **state)
{
	const char *const bad_pvclock[] = {"",
					   "mul=1",
					   "tsc_timestamp=1,system_time=1,mul=1",
					   "tsc_timestamp=1,system_time=1,mul=0,shift=0",
					   "tsc_timestamp=1,system_time=1,mul=1,shift=0,",
					   "tsc_timestamp=1,system_time=1,mul=1,shift=0,mul=2",
					   "tsc_timestamp=1,system_time=1,mul=1,shift=40",
					   "tsc_timestamp=-1,system_time=1,mul=1,shift=0",
					   "tsc_timestamp=1,system_time=1,mul=4294967296,shift=0",
					   "tsc_timestamp=1 ,system_time=1,mul=1,shift=0",
					   "speed=1"};
	const char *const bad_scaling[] = {"",     "5",   "5/",    "/48",  "0/48",
					   "5/64", "5/0", "5/48x", "-5/48"};
	const char *const bad_offset[] = {
		"", "-", "5x", " 5", "--5", "18446744073709551616", "-9223372036854775809"};
	struct tsc_scaling scaling = {.offset = 3};
	struct pvclock p;
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(bad_pvclock) / sizeof(bad_pvclock[0]); i++)
		assert_int_equal(clock_eval_parse_pvclock(bad_pvclock[i], &p), -EINVAL);
	for (size_t i = 0; i < sizeof(bad_scaling) / sizeof(bad_scaling[0]); i++)
		assert_int_equal(clock_eval_parse_scaling(bad_scaling[i], &scaling), -EINVAL);
	for (size_t i = 0; i < sizeof(bad_offset) / sizeof(bad_offset[0]); i++)
		assert_int_equal(clock_eval_parse_offset(bad_offset[i], &n), -EINVAL);
	assert_int_equal(clock_eval_parse_pvclock("shift=-1,mul=0xccccccccc", &p), -EINVAL);
	assert_int_equal(clock_eval_parse_pvclock(
				 "shift=-1,mul=0xcccccccc,system_time=7,tsc_timestamp=9", &p),
			 0);
	assert_true(p.shift == -1 && p.mul == 0xcccccccc && p.system_time == 7 &&
		    p.tsc_timestamp == 9 && p.flags == 0);
	assert_int_equal(clock_eval_parse_scaling("234562480592213/48", &scaling), 0);
	assert_true(scaling.ratio == 234562480592213 && scaling.frac_bits == 48 &&
		    scaling.offset == 3);
	assert_int_equal(clock_eval_parse_offset("-9223372036854775808", &n), 0);
	assert_true(n == 1ull << 63);
	assert_int_equal(clock_eval_parse_offset("18446744073709551615", &n), 0);
	assert_true(n == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eval_gives_every_clock_of_one_instant),
		cmocka_unit_test(parameters_are_read_strictly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
