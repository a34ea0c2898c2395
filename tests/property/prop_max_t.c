/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that the level of a gate holds. If nothing changed, the share of experiments in which
 * any figure alarms is at most the level, for any distributions (normal, heavy tails, few distinct
 * values, missing values) and for any dependence between the figures. The test allows four standard
 * deviations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "host-collector/compare/max_t.h"

enum { ROWS = 24, RUNS_MAX = 20 };

static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static double uniform(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
	double radius = sqrt(-2 * log(uniform(state)));

	return radius * cos(2 * 3.14159265358979 * uniform(state));
}

static double value_draw(int row, double common, uint64_t *state)
{
	switch (row % 5) {
	case 0:
		return normal(state);
	case 1:
		return tan(3.14159265358979 * (uniform(state) - 0.5)); /* Cauchy */
	case 2:
		return floor(3 * uniform(state));
	case 3:
		return 0.9 * common + 0.3 * normal(state);
	default:
		return uniform(state) < 0.1 ? (double)NAN : normal(state);
	}
}

static void level_check(size_t n_base, size_t n_new, int experiments, double level, uint64_t seed)
{
	static double values[ROWS][RUNS_MAX];
	struct max_t_row rows[ROWS];
	int up = 0, down = 0;
	double most;

	for (int e = 0; e < experiments; e++) {
		bool any_up = false, any_down = false, complete;
		uint64_t splits;

		for (size_t i = 0; i < n_base + n_new; i++) {
			double common = normal(&seed);

			for (int r = 0; r < ROWS; r++)
				values[r][i] = value_draw(r, common, &seed);
		}
		for (int r = 0; r < ROWS; r++)
			rows[r] = (struct max_t_row){.values = values[r], .floor = 0.05};
		assert_int_equal(max_t_test(rows, ROWS, n_base, n_new, &splits, &complete), 0);
		for (int r = 0; r < ROWS; r++) {
			any_up |= rows[r].p_up <= level;
			any_down |= rows[r].p_down <= level;
		}
		up += any_up;
		down += any_down;
	}
	most = experiments * level + 4 * sqrt(experiments * level * (1 - level));
	print_message("%zu against %zu: %d up and %d down in %d at %g %%\n", n_base, n_new, up,
		      down, experiments, 100 * level);
	assert_true(up <= most);
	assert_true(down <= most);
	/* And it is no test that never alarms. */
	assert_true(up + down > experiments * level / 2);
}

static void test_level(void **state)
{
	(void)state;
	level_check(5, 5, 2000, 0.05, 1);
	level_check(7, 4, 1500, 0.05, 2);
	level_check(6, 6, 800, 0.025, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_level)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
