/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests samples of this machine's clocks, and the conversion of CLOCK_MONOTONIC stamps to TSC.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "clock/sample.h"

static void sleep_ms(long ms)
{
	const struct timespec t = {.tv_nsec = ms * 1000000};

	nanosleep(&t, NULL);
}

static void sample_lies_between_two_reads_of_each_clock(void **state)
{
	struct timespec before, after;
	struct clock_sample s;
	uint64_t tsc = clock_tsc_read();

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(clock_sample_take(&s), 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true(s.tsc >= tsc && s.tsc <= clock_tsc_read());
	assert_true(s.monotonic_ns >=
		    (uint64_t)before.tv_sec * 1000000000u + (uint64_t)before.tv_nsec);
	assert_true(s.monotonic_ns <=
		    (uint64_t)after.tv_sec * 1000000000u + (uint64_t)after.tv_nsec);
	assert_true(s.raw_ns && s.realtime_ns);
}

static void tsc_rate_agrees_with_the_raw_clock(void **state)
{
	struct clock_sample a, b;
	uint64_t hz = 0;
	double measured;

	(void)state;
	assert_int_equal(clock_tsc_hz(&hz), 0);
	assert_int_equal(clock_sample_take(&a), 0);
	sleep_ms(50);
	assert_int_equal(clock_sample_take(&b), 0);
	measured = (double)(b.tsc - a.tsc) / (double)(b.raw_ns - a.raw_ns) * 1e9;
	assert_true(measured / (double)hz > 0.998 && measured / (double)hz < 1.002);
}

/* Stamps taken between TSC reads, on the real clocks. */
static void real_stamps_fall_within_their_bound(void **state)
{
	enum { STAMPS = 200 };
	struct {
		uint64_t before, ns, after;
	} stamp[STAMPS];
	struct capture_clock c;
	struct clock_sample s;

	(void)state;
	capture_clock_init(&c);
	assert_int_equal(clock_sample_take(&s), 0);
	capture_clock_push(&c, &s);
	for (int i = 0; i < STAMPS; i++) {
		struct timespec t;

		stamp[i].before = clock_tsc_read();
		clock_gettime(CLOCK_MONOTONIC, &t);
		stamp[i].after = clock_tsc_read();
		stamp[i].ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
		if (i % 20 == 0)
			sleep_ms(1);
	}
	assert_int_equal(clock_sample_take(&s), 0);
	capture_clock_push(&c, &s);
	for (int i = 0; i < STAMPS; i++) {
		uint64_t err, tsc = capture_clock_to_tsc(&c, stamp[i].ns, &err);

		assert_true(tsc + err >= stamp[i].before && tsc <= stamp[i].after + err);
		assert_true(err < 1000000); /* and the bound says something */
	}
}

static void without_two_samples_nothing_is_claimed(void **state)
{
	const struct clock_sample s = {.tsc = 5000, .tsc_width = 100, .monotonic_ns = 1000};
	struct capture_clock c;
	uint64_t err = 0;

	(void)state;
	capture_clock_init(&c);
	capture_clock_to_tsc(&c, 1000, &err);
	assert_true(err == UINT64_MAX);
	capture_clock_push(&c, &s);
	capture_clock_to_tsc(&c, 1000, &err);
	assert_true(err == UINT64_MAX);
}

/* A made-up machine: TSC at 2 GHz, RAW exact, MONOTONIC at a rate that changes within the span. */
struct bend_case {
	const char *name;
	uint64_t span_ns, change_at_ns; /* true time */
	double ppm_before, ppm_after;
	bool steady;      /* what the samples declare */
	double slew_ppm;  /* likewise */
	uint64_t err_max; /* ticks, in the middle */
};

static const struct bend_case bends[] = {
	{"constant rate, declared", 20000000, 20000000, 13, 13, true, 13, 700},
	{"constant rate, undeclared", 20000000, 20000000, 13, 13, false, 0, 30000},
	{"+500 to -500 ppm in the middle", 100000000, 50000000, 500, -500, false, 0, 120000},
	{"-500 to +500 ppm early", 100000000, 10000000, -500, 500, false, 0, 120000},
	{"0 to 10 % by the tick parameter", 50000000, 30000000, 0, 100000, false, 100000, 20000000},
	{"offset being slewed out, 1.2 %", 50000000, 49000000, 0, 12500, false, 12500, 3000000},
};

static double bent_ns(const struct bend_case *b, double t)
{
	double first = t < (double)b->change_at_ns ? t : (double)b->change_at_ns;

	return first * (1 + b->ppm_before / 1e6) + (t - first) * (1 + b->ppm_after / 1e6);
}

static void a_changing_rate_stays_within_the_bound(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bends) / sizeof(bends[0]); i++) {
		const struct bend_case *b = &bends[i];
		const uint64_t origin = 1ull << 60, width = 200;
		struct clock_sample s = {.tsc = origin,
					 .tsc_width = width,
					 .monotonic_ns = 1000,
					 .raw_ns = 5000,
					 .steady = b->steady,
					 .rate_ppb = (int32_t)(b->ppm_before * 1000),
					 .slew_ppb = (uint32_t)(b->slew_ppm * 1000)};
		struct capture_clock c;

		capture_clock_init(&c);
		capture_clock_push(&c, &s);
		s.rate_ppb = (int32_t)(b->ppm_after * 1000);
		s.tsc = origin + 2 * b->span_ns + 90; /* the reads were at one end of the bracket */
		s.monotonic_ns = 1000 + (uint64_t)bent_ns(b, (double)b->span_ns);
		s.raw_ns = 5000 + b->span_ns;
		capture_clock_push(&c, &s);
		/* Also some way outside of the span. */
		for (int step = -10; step <= 110; step++) {
			double t = (double)b->span_ns * step / 100;
			uint64_t stamp = 1000 + (uint64_t)(int64_t)bent_ns(b, t), err;
			uint64_t tsc = capture_clock_to_tsc(&c, stamp, &err);
			uint64_t truth = origin + (uint64_t)(int64_t)(2 * t);

			if ((uint64_t)llabs((int64_t)(tsc - truth)) > err)
				fail_msg("%s, at %d %%: off by %lld ticks, bound %llu", b->name,
					 step, llabs((long long)(tsc - truth)),
					 (unsigned long long)err);
			if (step == 50 && err > b->err_max)
				fail_msg("%s: bound %llu ticks is no use", b->name,
					 (unsigned long long)err);
		}
	}
}

static void a_clock_set_back_starts_the_span_anew(void **state)
{
	struct clock_sample s = {.tsc = 5000, .tsc_width = 100, .monotonic_ns = 1000};
	struct capture_clock c;
	uint64_t err;

	(void)state;
	capture_clock_init(&c);
	capture_clock_push(&c, &s);
	s.tsc = 9000;
	s.monotonic_ns = 2000;
	capture_clock_push(&c, &s);
	s.tsc = 100;
	s.monotonic_ns = 3000;
	capture_clock_push(&c, &s);
	capture_clock_to_tsc(&c, 2500, &err);
	assert_true(err == UINT64_MAX);
}

/* A sample `true_ns` after the first, of clocks that stood still for `paused_ns` of that while the
 * TSC (2 GHz) ran on. */
static struct clock_sample paused_sample(uint64_t true_ns, uint64_t paused_ns, uint64_t tsc_hz)
{
	const uint64_t origin = 1ull << 50;

	return (struct clock_sample){.tsc = origin + true_ns * (tsc_hz / 1000000) / 1000,
				     .tsc_width = 200,
				     .monotonic_ns = 1000 + true_ns - paused_ns,
				     .raw_ns = 5000 + true_ns - paused_ns,
				     .steady = true};
}

/* Nothing says on which side of the pause the event was: the bound must hold both. */
static void a_pause_of_the_clocks_is_inside_the_bound(void **state)
{
	const uint64_t ms = 1000000, pause = 447 * ms;
	struct capture_clock c;
	struct clock_sample s;
	uint64_t err, tsc, at, before, after;

	(void)state;
	capture_clock_init(&c);
	for (uint64_t t = 0; t <= 100 * ms; t += 20 * ms) {
		s = paused_sample(t, 0, 2000000000);
		capture_clock_push(&c, &s);
	}
	capture_clock_to_tsc(&c, s.monotonic_ns - 10 * ms, &err);
	assert_true(err < 10000);
	s = paused_sample(120 * ms + pause, pause, 2000000000);
	capture_clock_push(&c, &s);
	for (uint64_t into = 0; into <= 20 * ms; into += ms) {
		at = 1000 + 100 * ms + into;
		before = paused_sample(100 * ms + into, 0, 2000000000).tsc;
		after = paused_sample(100 * ms + into + pause, pause, 2000000000).tsc;
		tsc = capture_clock_to_tsc(&c, at, &err);
		assert_true(tsc <= before + err && tsc + err >= before);
		assert_true(tsc <= after + err && tsc + err >= after);
	}
	s = paused_sample(140 * ms + pause, pause, 2000000000);
	capture_clock_push(&c, &s);
	capture_clock_to_tsc(&c, s.monotonic_ns - 10 * ms, &err);
	assert_true(err < 10000);
}

/* After a migration the TSC keeps another rate: no jump for ever. */
static void a_new_rate_is_believed_once_it_stays(void **state)
{
	const uint64_t ms = 1000000;
	struct capture_clock c;
	struct clock_sample s;
	uint64_t err;

	(void)state;
	capture_clock_init(&c);
	for (uint64_t t = 20 * ms; t <= 100 * ms; t += 20 * ms) {
		s = paused_sample(t, 0, t < 60 * ms ? 2000000000 : 2500000000);
		capture_clock_push(&c, &s);
	}
	capture_clock_to_tsc(&c, s.monotonic_ns - 10 * ms, &err);
	assert_true(err < 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sample_lies_between_two_reads_of_each_clock),
		cmocka_unit_test(tsc_rate_agrees_with_the_raw_clock),
		cmocka_unit_test(real_stamps_fall_within_their_bound),
		cmocka_unit_test(without_two_samples_nothing_is_claimed),
		cmocka_unit_test(a_changing_rate_stays_within_the_bound),
		cmocka_unit_test(a_clock_set_back_starts_the_span_anew),
		cmocka_unit_test(a_pause_of_the_clocks_is_inside_the_bound),
		cmocka_unit_test(a_new_rate_is_believed_once_it_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
