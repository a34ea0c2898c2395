/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the history of a row: complete while it is short; merged, with correct times and shares,
 * when it is long; always bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "host-collector/analyze/scene/track.h"

struct sum {
	size_t n;
	int64_t ns, state_ns[TRACK_STATES], last_end;
	bool overlaps;
	int64_t longest_of_pid7;
};

static void sum_take(void *context, const struct track_piece *p)
{
	struct sum *s = context;

	s->overlaps |= s->n && p->begin.ns < s->last_end;
	s->last_end = p->begin.ns + p->ns;
	s->n++;
	s->ns += p->ns;
	if (p->pid == 7 && p->ns > s->longest_of_pid7)
		s->longest_of_pid7 = p->ns;
	if (!p->merged)
		s->state_ns[p->state] += p->ns;
	for (int i = 0; p->merged && i < TRACK_STATES; i++)
		s->state_ns[i] += p->ns * p->share[i] / 255;
}

static struct sum sum_of(const struct track *t, int64_t from, int64_t until)
{
	struct sum s = {.n = 0};

	track_each(t, (struct host_ns){from}, (struct host_ns){until}, sum_take, &s);
	return s;
}

/* `n` pieces of 10 us: states 0 and 1 in turn, 7 us and 3 us. */
static int64_t fill(struct track *t, size_t n, int64_t now)
{
	for (size_t i = 0; i < n; i++) {
		struct track_piece p = {
			.begin = {now}, .ns = i % 2 ? 3000 : 7000, .state = i % 2 ? 1 : 0};

		assert_int_equal(track_add(t, &p), 0);
		now += p.ns;
	}
	return now;
}

static void is_whole_while_it_is_short(void **unused)
{
	struct track t = {.forgot = false};
	struct sum s;
	int64_t end = fill(&t, 1000, 500);

	(void)unused;
	s = sum_of(&t, 0, INT64_MAX);
	assert_int_equal(s.n, 1000);
	assert_int_equal(s.ns, end - 500);
	assert_int_equal(track_grain_ns(&t, (struct host_ns){0}), 0);
	/* Cut at both edges. */
	s = sum_of(&t, 500 + 1000, 500 + 8000);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.ns, 7000);
	assert_int_equal(s.state_ns[1], 1000);
	track_fini(&t);
}

static void merges_what_is_old_and_loses_no_time(void **unused)
{
	struct track t = {.forgot = false};
	struct track_piece pause = {.ns = 50000000, .state = 7, .pid = 7};
	struct sum s;
	int64_t now = fill(&t, 100000, 0);

	(void)unused;
	pause.begin.ns = now;
	assert_int_equal(track_add(&t, &pause), 0);
	now = fill(&t, 300000, now + pause.ns);
	s = sum_of(&t, 0, INT64_MAX);
	assert_false(s.overlaps);
	assert_int_equal(s.ns, now);
	assert_true(s.n < 30000);
	assert_false(t.forgot);
	assert_int_equal(s.longest_of_pid7, pause.ns); /* long enough to stay by itself */
	assert_int_equal(s.state_ns[7], pause.ns);
	/* 70 % of 200,000 pairs of 10 us, within the shares' rounding down. */
	assert_in_range(s.state_ns[0], 1380000000, 1400000000);
	assert_true(track_grain_ns(&t, (struct host_ns){0}) > 0);
	assert_int_equal(track_grain_ns(&t, (struct host_ns){now - 1000000}), 0);
	track_fini(&t);
}

static void is_bounded_and_says_what_it_forgot(void **unused)
{
	struct track t = {.forgot = false};
	struct track_piece p = {.ns = 40000000};
	struct sum s;

	(void)unused;
	for (size_t i = 0; i < 40000; i++) {
		p.begin.ns = (int64_t)i * p.ns;
		p.state = i % 2;
		assert_int_equal(track_add(&t, &p), 0);
	}
	s = sum_of(&t, 0, INT64_MAX);
	assert_true(t.forgot);
	assert_true(s.n >= TRACK_PIECES && s.n < TRACK_PIECES + 2 * 4096 + 3);
	assert_int_equal(s.last_end, 40000 * p.ns);
	track_fini(&t);
}

static void thins_to_a_grain(void **unused)
{
	struct track_piece p[6] = {
		{.begin = {0}, .ns = 10, .state = 0},   {.begin = {10}, .ns = 10, .state = 1},
		{.begin = {20}, .ns = 500, .state = 2}, {.begin = {520}, .ns = 30, .state = 1},
		{.begin = {550}, .ns = 10, .state = 0}, {.begin = {5000}, .ns = 10, .state = 0},
	};

	(void)unused;
	assert_int_equal(track_thin(p, 6, 100), 4);
	assert_true(p[0].merged);
	assert_int_equal(p[0].ns, 20);
	assert_in_range(p[0].share[0], 126, 128);
	assert_false(p[1].merged);
	assert_int_equal(p[1].state, 2);
	assert_true(p[2].merged);
	assert_int_equal(p[2].state, 1);
	assert_int_equal(p[3].begin.ns, 5000); /* no piece spans a gap */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_whole_while_it_is_short),
		cmocka_unit_test(merges_what_is_old_and_loses_no_time),
		cmocka_unit_test(is_bounded_and_says_what_it_forgot),
		cmocka_unit_test(thins_to_a_grain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
