/* SPDX-License-Identifier: GPL-2.0-only */
/* Compares TSC scaling and pvclock with values that Python's integers gave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "clock/pvclock.h"
#include "clock/tsc_scaling.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *name;
	struct tsc_scaling scaling;
	uint64_t host, guest; /* guest reads this at host ... */
	uint64_t first, span; /* ... and from first to first + span */
} scalings[] = {
	{"not scaled", {.offset = (uint64_t)-1000}, 5000, 4000, 5000, 0},
	{"offset wraps", {.offset = 1}, UINT64_MAX, 0, UINT64_MAX, 0},
	{"VMX, ratio 1", {1ull << 48, 48, 7}, 1ull << 62, (1ull << 62) + 7, 1ull << 62, 0},
	{"Intel 3.0 -> 2.5 GHz, VMX",
	 {234562480592213, 48, (uint64_t)-81502304},
	 7305511870021,
	 6087845056046,
	 7305511870021,
	 0},
	{"Intel 3.0 -> 2.5 GHz, VMX, large",
	 {234562480592213, 48, (1ull << 63) + 12345},
	 (1ull << 62) + 987654321,
	 13066443719700651212u,
	 4611686019415042225,
	 0},
	{"AMD 2.6 -> 2.5 GHz, SVM",
	 {4129776246, 32, (uint64_t)-18000000000000},
	 93600000000000,
	 71999999996647,
	 93600000000000,
	 0},
	{"AMD 2.5 -> 2.6 GHz, SVM",
	 {4466765987, 32, 17},
	 1000000000000001,
	 1039999999804440,
	 1000000000000001,
	 0},
	{"a third of the rate", {0x55555555, 32, 0}, 9, 2, 7, 2},
};

static void tsc_scaling_is_kvms_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(scalings); i++) {
		const struct tsc_scaling *s = &scalings[i].scaling;
		struct host_tsc first;
		uint64_t span;

		assert_true(tsc_scaling_valid(s));
		if (tsc_scaling_to_guest(s, (struct host_tsc){scalings[i].host}).ticks !=
			    scalings[i].guest ||
		    !tsc_scaling_to_host(s, (struct guest_tsc){scalings[i].guest}, &first, &span) ||
		    first.ticks != scalings[i].first || span != scalings[i].span)
			fail_msg("%s", scalings[i].name);
	}
}

static void scaling_that_cannot_be_is_refused(void **state)
{
	const struct tsc_scaling zero = {0, 48, 0}, wide = {1, 64, 0}, tiny = {1, 48, 0};
	struct host_tsc first;
	uint64_t span;

	(void)state;
	assert_false(tsc_scaling_valid(&zero));
	assert_false(tsc_scaling_valid(&wide));
	/* 2^63 guest ticks would take 2^111 of the host's. */
	assert_false(tsc_scaling_to_host(&tiny, (struct guest_tsc){1ull << 63}, &first, &span));
}

/* A guest that runs faster steps over values: the next instant is taken. */
static void a_value_stepped_over_gives_the_next_tick(void **state)
{
	const struct tsc_scaling twice = {2ull << 32, 32, 0};
	struct host_tsc first;
	uint64_t span;

	(void)state;
	assert_true(tsc_scaling_to_host(&twice, (struct guest_tsc){7}, &first, &span));
	assert_int_equal(first.ticks, 4);
	assert_int_equal(span, 0);
}

static const struct {
	const char *name;
	struct pvclock pvclock;
	uint64_t tsc, ns;
	uint64_t first, span;
} pvclocks[] = {
	{"2.5 GHz", {1000, 7, 3435973836, -1, 1}, 2500001000, 1000000006, 2500001000, 1},
	{"2.596 GHz after an hour",
	 {78187493520, 55000000123, 3308748437, -1, 1},
	 9424248293521,
	 3654999945746,
	 9424248293520,
	 3},
	{"1 GHz, shift 1, a day",
	 {1000000000000, 1000000000, 0x80000000, 1, 0},
	 87400000000000,
	 86401000000000,
	 87400000000000,
	 0},
	{"500 MHz, shift 2", {5, 5, 0x80000000, 2, 0}, 12345678901, 24691357797, 12345678901, 0},
	{"before the timestamp",
	 {10000000000000, 4000000000000, 3435973836, -1, 1},
	 9997499999999,
	 3998999999999,
	 9997499999998,
	 1},
	{"far away",
	 {1ull << 63, 0, 4294967295, 0, 0},
	 13835058055282163712u,
	 4611686017353646080,
	 13835058055282163712u,
	 1},
};

static void pvclock_is_the_guests_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(pvclocks); i++) {
		const struct pvclock *p = &pvclocks[i].pvclock;
		struct guest_tsc first;
		uint64_t span;

		assert_true(pvclock_valid(p));
		if (pvclock_from_tsc(p, (struct guest_tsc){pvclocks[i].tsc}).ns != pvclocks[i].ns ||
		    !pvclock_to_tsc(p, (struct kvmclock_ns){pvclocks[i].ns}, &first, &span) ||
		    first.ticks != pvclocks[i].first || span != pvclocks[i].span)
			fail_msg("%s", pvclocks[i].name);
	}
}

static void only_the_line_makes_an_epoch(void **state)
{
	struct pvclock a = {1000, 7, 3435973836, -1, 1}, b = a;

	(void)state;
	b.flags = 3;
	assert_true(pvclock_same_line(&a, &b));
	b.system_time++;
	assert_false(pvclock_same_line(&a, &b));
	assert_false(pvclock_valid(&(struct pvclock){.mul = 0}));
	assert_false(pvclock_valid(&(struct pvclock){.mul = 1, .shift = -32}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tsc_scaling_is_kvms_both_ways),
		cmocka_unit_test(scaling_that_cannot_be_is_refused),
		cmocka_unit_test(a_value_stepped_over_gives_the_next_tick),
		cmocka_unit_test(pvclock_is_the_guests_both_ways),
		cmocka_unit_test(only_the_line_makes_an_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
