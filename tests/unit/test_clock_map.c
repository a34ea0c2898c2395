/* SPDX-License-Identifier: GPL-2.0-only */
/* Piecewise maps: which parameters hold when, both ways, and what a repetition does not change. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "clock/eval.h"
#include "clock/map.h"

static const uint64_t hz = 2500000000u;
static const struct clock_params plain = {
	.scaling = {.offset = (uint64_t)-1000000000},
	.has_pvclock = true,
	.pvclock = {500000000, 3000000000, 3435973836, -1, PVCLOCK_TSC_STABLE},
};

static void a_repetition_of_the_same_values_is_no_epoch(void **state)
{
	struct clock_map *m = clock_map_new();
	struct clock_params p = plain;
	struct host_tsc from;

	(void)state;
	assert_int_equal(clock_map_push(m, (struct host_tsc){10 * hz}, &p), 1);
	assert_int_equal(clock_map_push(m, (struct host_tsc){310 * hz}, &p), 0);
	p.pvclock.flags = PVCLOCK_TSC_STABLE | PVCLOCK_PAUSED;
	assert_int_equal(clock_map_push(m, (struct host_tsc){320 * hz}, &p), 0);
	p.pvclock.system_time += 5;
	assert_int_equal(clock_map_push(m, (struct host_tsc){330 * hz}, &p), 1);
	assert_int_equal(clock_map_push(m, (struct host_tsc){300 * hz}, &plain), -EINVAL);
	p.pvclock.mul = 0;
	assert_int_equal(clock_map_push(m, (struct host_tsc){340 * hz}, &p), -EINVAL);
	assert_int_equal(clock_map_n_epochs(m), 2);
	assert_int_equal(clock_map_epoch(m, 0, &from)->pvclock.flags, 3);
	assert_int_equal(from.ticks, 10 * hz);
	clock_map_free(m);
}

static void nothing_is_known_without_an_epoch(void **state)
{
	struct clock_params tsc_only = {.scaling = {.offset = 5}};
	struct clock_map *m = clock_map_new();
	struct kvmclock_ns ns;
	struct guest_tsc guest;
	struct host_tsc host;
	uint64_t err;

	(void)state;
	assert_false(clock_map_guest_tsc(m, (struct host_tsc){1}, &guest));
	assert_false(clock_map_from_kvmclock(m, (struct kvmclock_ns){1}, &host, &err));
	assert_int_equal(clock_map_push(m, (struct host_tsc){10}, &tsc_only), 1);
	assert_true(clock_map_guest_tsc(m, (struct host_tsc){20}, &guest));
	assert_int_equal(guest.ticks, 25);
	assert_false(clock_map_kvmclock(m, (struct host_tsc){20}, &ns));
	assert_false(clock_map_from_kvmclock(m, (struct kvmclock_ns){1}, &host, &err));
	clock_map_free(m);
}

/* What changes the clocks, one after another; `steps` host seconds apart. */
static void change_apply(struct clock_params *p, int step, uint64_t now)
{
	switch (step % 5) {
	case 0: /* KVM_SET_CLOCK, ahead */
		p->pvclock.system_time += 7000000000;
		break;
	case 1: /* a pause under QEMU: kvmclock goes on where it stood 3 s ago */
		p->pvclock.system_time =
			pvclock_from_tsc(&p->pvclock,
					 (struct guest_tsc){now - 3 * hz + p->scaling.offset})
				.ns;
		p->pvclock.tsc_timestamp = now + p->scaling.offset;
		break;
	case 2: /* TSC offset written, ahead; kvmclock follows its new timestamp */
		p->scaling.offset += 123456789;
		p->pvclock.tsc_timestamp += 123456789;
		break;
	case 3: /* master clock off: tens of ns */
		p->pvclock.flags = 0;
		p->pvclock.system_time += 40;
		break;
	default: /* migration to a host with TSC scaling */
		p->scaling.ratio = 234562480592213;
		p->scaling.frac_bits = TSC_FRAC_BITS_VMX;
		p->pvclock.tsc_timestamp =
			tsc_scaling_to_guest(&p->scaling, (struct host_tsc){now}).ticks;
		p->pvclock.system_time += 900000000000;
		break;
	}
}

static void each_epoch_converts_by_its_own_parameters(void **state)
{
	enum { EPOCHS = 40 };
	struct clock_params params[EPOCHS] = {plain};
	struct clock_map *m = clock_map_new();

	(void)state;
	for (int e = 0; e < EPOCHS; e++) {
		uint64_t now = (uint64_t)(e + 1) * 10 * hz;

		if (e) {
			params[e] = params[e - 1];
			change_apply(&params[e], e - 1, now);
		}
		assert_int_equal(clock_map_push(m, (struct host_tsc){now}, &params[e]), 1);
	}
	for (int e = 0; e < EPOCHS; e++) {
		for (uint64_t at = e ? 0 : 5; at < 10; at += 3) {
			struct host_tsc host = {(uint64_t)(e + 1) * 10 * hz + at * hz + 1}, back;
			struct guest_tsc guest, want;
			struct kvmclock_ns ns;
			uint64_t err;

			want = tsc_scaling_to_guest(&params[e].scaling, host);
			assert_true(clock_map_guest_tsc(m, host, &guest));
			assert_int_equal(guest.ticks, want.ticks);
			assert_true(clock_map_kvmclock(m, host, &ns));
			assert_int_equal(ns.ns, pvclock_from_tsc(&params[e].pvclock, want).ns);
			/* A pause repeats no value of kvmclock, so the way back is unique, but for
			 * the instants that the pause took away. */
			if ((e + 1) % 5 == 2 && at > 6)
				continue;
			assert_true(clock_map_from_kvmclock(m, ns, &back, &err));
			if (!(back.ticks <= host.ticks && host.ticks - back.ticks <= err))
				fail_msg("epoch %d, second %u: %lld ticks off, bound %llu", e,
					 (unsigned int)at, (long long)(back.ticks - host.ticks),
					 (unsigned long long)err);
		}
	}
	clock_map_free(m);
}

static void a_guest_tsc_set_back_means_the_newer_pass(void **state)
{
	struct clock_params a = {.scaling = {.offset = 0}}, b = {.scaling = {.offset = -5 * hz}};
	struct clock_map *m = clock_map_new();
	struct host_tsc host;
	uint64_t err;

	(void)state;
	clock_map_push(m, (struct host_tsc){0}, &a);
	clock_map_push(m, (struct host_tsc){20 * hz}, &b); /* the guest's TSC: 20 s, then 15 s */
	assert_true(clock_map_from_guest_tsc(m, (struct guest_tsc){14 * hz}, &host, &err));
	assert_int_equal(host.ticks, 14 * hz);
	assert_true(clock_map_from_guest_tsc(m, (struct guest_tsc){16 * hz}, &host, &err));
	assert_int_equal(host.ticks, 21 * hz);
	assert_int_equal(err, 0);
	clock_map_free(m);
}

static void a_value_left_out_by_a_jump_says_so(void **state)
{
	struct clock_params a = {.scaling = {.offset = 0}}, b = {.scaling = {.offset = 5 * hz}};
	struct clock_map *m = clock_map_new();
	struct host_tsc host;
	uint64_t err;

	(void)state;
	clock_map_push(m, (struct host_tsc){0}, &a);
	clock_map_push(m, (struct host_tsc){20 * hz}, &b);
	assert_true(clock_map_from_guest_tsc(m, (struct guest_tsc){22 * hz}, &host, &err));
	assert_int_equal(host.ticks, 22 * hz);
	assert_int_equal(err, 2 * hz);
	clock_map_free(m);
}

static void memory_is_bounded_whatever_a_guest_writes(void **state)
{
	struct clock_map *m = clock_map_new();
	struct guest_tsc guest;

	(void)state;
	for (uint64_t i = 0; i < 3 * CLOCK_MAP_EPOCHS_MAX; i++) {
		struct clock_params p = {.scaling = {.offset = i * 77}};

		assert_int_equal(clock_map_push(m, (struct host_tsc){i * 10}, &p), 1);
	}
	assert_int_equal(clock_map_n_epochs(m), CLOCK_MAP_EPOCHS_MAX);
	assert_true(
		clock_map_guest_tsc(m, (struct host_tsc){30 * CLOCK_MAP_EPOCHS_MAX - 25}, &guest));
	assert_int_equal(guest.ticks,
			 30 * CLOCK_MAP_EPOCHS_MAX - 25 + (3 * CLOCK_MAP_EPOCHS_MAX - 3) * 77);
	clock_map_free(m);
}

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
		cmocka_unit_test(a_repetition_of_the_same_values_is_no_epoch),
		cmocka_unit_test(nothing_is_known_without_an_epoch),
		cmocka_unit_test(each_epoch_converts_by_its_own_parameters),
		cmocka_unit_test(a_guest_tsc_set_back_means_the_newer_pass),
		cmocka_unit_test(a_value_left_out_by_a_jump_says_so),
		cmocka_unit_test(memory_is_bounded_whatever_a_guest_writes),
		cmocka_unit_test(eval_gives_every_clock_of_one_instant),
		cmocka_unit_test(parameters_are_read_strictly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
