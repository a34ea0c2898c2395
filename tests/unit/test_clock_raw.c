/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the conversion from host TSC to CLOCK_MONOTONIC_RAW and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "clock/raw.h"

enum { WIDTH = 160 };

/* A machine whose TSC runs at 2.4 GHz + 37 ppm when it was told 2.4 GHz. */
static const uint64_t tsc0 = 0xfff0000000000000u, raw0 = 77000000000u, hz = 2400000000u;

static uint64_t true_ns(uint64_t tsc)
{
	return raw0 +
	       (uint64_t)(int64_t)((long double)(int64_t)(tsc - tsc0) / (2.4L * (1 + 37e-6L)));
}

static struct clock_sample sample_at(uint64_t tsc, uint64_t read_at)
{
	return (struct clock_sample){.tsc = tsc,
				     .tsc_width = WIDTH,
				     .raw_ns = true_ns(tsc - WIDTH / 2 + read_at),
				     .realtime_ns = 1700000000000000000u + true_ns(tsc)};
}

static void times_between_and_beyond_samples_stay_in_bound(void **state)
{
	struct raw_clock *c = raw_clock_new(hz, false);

	(void)state;
	assert_non_null(c);
	for (uint64_t i = 0; i < 2000; i++) {
		uint64_t now = tsc0 + i * hz / 20; /* every 50 ms */
		struct clock_sample s = sample_at(now, i * 61 % WIDTH);

		assert_int_equal(raw_clock_push(c, &s), 0);
		for (int k = 0; k < 10; k++) {
			/* from the past 100 ms to the next 100 ms */
			uint64_t tsc = now + hz / 10 * (uint64_t)k / 5 - (i > 2 ? hz / 10 : 0);
			struct host_time t = raw_clock_from_tsc(c, (struct host_tsc){tsc}, 0);
			int64_t off = t.t.ns - (int64_t)true_ns(tsc);

			if ((uint64_t)llabs(off) > t.err_ns)
				fail_msg("sample %u: off by %lld ns, bound %llu", (unsigned int)i,
					 (long long)off, (unsigned long long)t.err_ns);
			if (i > 100 && t.err_ns > 100)
				fail_msg("sample %u: bound %llu ns is no use", (unsigned int)i,
					 (unsigned long long)t.err_ns);
		}
	}
	raw_clock_free(c);
}

static void carried_error_is_added(void **state)
{
	struct raw_clock *c = raw_clock_new(hz, false);
	struct clock_sample s = sample_at(tsc0, 10);
	struct host_time a, b;

	(void)state;
	assert_int_equal(raw_clock_push(c, &s), 0);
	a = raw_clock_from_tsc(c, (struct host_tsc){tsc0}, 0);
	b = raw_clock_from_tsc(c, (struct host_tsc){tsc0}, 2400);
	assert_int_equal(a.t.ns, b.t.ns);
	assert_in_range(b.err_ns - a.err_ns, 1000, 1010);
	raw_clock_free(c);
}

static void there_and_back_is_the_same_tick(void **state)
{
	struct raw_clock *c = raw_clock_new(hz, false);

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		struct clock_sample s = sample_at(tsc0 + i * hz, 80);

		assert_int_equal(raw_clock_push(c, &s), 0);
	}
	for (uint64_t i = 1; i < 1000; i++) {
		uint64_t tsc = tsc0 + i * hz / 9;
		struct host_time t = raw_clock_from_tsc(c, (struct host_tsc){tsc}, 0);
		struct host_tsc back = raw_clock_to_tsc(c, t.t);

		assert_in_range(back.ticks - tsc + 20, 0, 40);
	}
	raw_clock_free(c);
}

static void real_clock_is_predicted(void **state)
{
	struct raw_clock *c;
	struct clock_sample s;
	uint64_t real_hz;

	(void)state;
	assert_int_equal(clock_tsc_hz(&real_hz), 0);
	c = raw_clock_new(real_hz, false);
	for (int i = 0; i < 50; i++) {
		const struct timespec pause = {.tv_nsec = 1000000};
		struct host_time early, late;
		uint64_t before, after;
		struct timespec now;

		assert_int_equal(clock_sample_take(&s), 0);
		assert_int_equal(raw_clock_push(c, &s), 0);
		nanosleep(&pause, NULL);
		before = clock_tsc_read();
		clock_gettime(CLOCK_MONOTONIC_RAW, &now);
		after = clock_tsc_read();
		early = raw_clock_from_tsc(c, (struct host_tsc){before}, 0);
		late = raw_clock_from_tsc(c, (struct host_tsc){after}, 0);
		assert_true(early.t.ns - (int64_t)early.err_ns <=
			    now.tv_sec * 1000000000 + now.tv_nsec);
		assert_true(late.t.ns + (int64_t)late.err_ns >=
			    now.tv_sec * 1000000000 + now.tv_nsec);
	}
	raw_clock_free(c);
}

static void wall_time_follows_the_nearest_sample(void **state)
{
	struct raw_clock *c = raw_clock_new(hz, false);
	struct clock_sample s;
	int64_t t;

	(void)state;
	for (uint64_t i = 0; i < 5000; i++) {
		s = sample_at(tsc0 + i * hz, 80);
		if (i >= 4000)
			s.realtime_ns += 3600000000000u; /* somebody set the clock */
		assert_int_equal(raw_clock_push(c, &s), 0);
	}
	t = (int64_t)true_ns(tsc0 + 10 * hz);
	assert_in_range(raw_clock_realtime_ns(c, (struct host_ns){t}) - (uint64_t)t,
			1699999999999999000u, 1700000000000001000u);
	t = (int64_t)true_ns(tsc0 + 4900 * hz);
	assert_in_range(raw_clock_realtime_ns(c, (struct host_ns){t}) - (uint64_t)t,
			1700003599999999000u, 1700003600000001000u);
	raw_clock_free(c);
}

/* However many samples came, what is kept of them covers them, in order. */
static void points_of_the_monotonic_clock_span_all_samples(void **state)
{
	struct raw_clock *c = raw_clock_new(hz, false);
	struct monotonic_ns monotonic;
	struct host_ns t, before = {0};
	size_t n = 0;

	(void)state;
	assert_false(raw_clock_monotonic_point(c, 0, &t, &monotonic));
	for (uint64_t i = 0; i < 5000; i++) {
		struct clock_sample s = sample_at(tsc0 + i * hz, 80);

		s.monotonic_ns = s.raw_ns + i * 20000; /* NTP makes it 20 ppm faster */
		assert_int_equal(raw_clock_push(c, &s), 0);
	}
	for (; raw_clock_monotonic_point(c, n, &t, &monotonic); n++) {
		uint64_t seconds = ((uint64_t)t.ns - raw0 + 500000000) / 1000000000;

		assert_true(t.ns > before.ns);
		assert_int_equal(monotonic.ns, (uint64_t)t.ns + seconds * 20000);
		before = t;
	}
	assert_in_range(n, 500, 1024);
	assert_in_range(before.ns, true_ns(tsc0 + 4990 * hz), true_ns(tsc0 + 5000 * hz));
	raw_clock_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_between_and_beyond_samples_stay_in_bound),
		cmocka_unit_test(carried_error_is_added),
		cmocka_unit_test(there_and_back_is_the_same_tick),
		cmocka_unit_test(real_clock_is_predicted),
		cmocka_unit_test(wall_time_follows_the_nearest_sample),
		cmocka_unit_test(points_of_the_monotonic_clock_span_all_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
