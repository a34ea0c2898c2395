// SPDX-License-Identifier: GPL-2.0-only
/* Tests conversions that use only the order of the round trips: the interval contains the true
 * time for a clock of any rate, and a steady clock with a few steps does not count as unsteady. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clock/echo.h"
#include "clock/order.h"

enum { ROUNDS = 2000, HOST_HZ = 1000000000, PERIOD = HOST_HZ / 5 };

static uint64_t random_below(uint64_t n)
{
	return (uint64_t)random() % n;
}

struct history {
	struct order *order;
	struct echo_sync *echo;
	uint64_t x[ROUNDS],
		y[ROUNDS]; /* instants between observations: what is asked, and the truth */
};

/* The rate differs in every tenth of a period, and is nothing at times. */
static void history_play(struct history *h, uint64_t guest, bool short_memory)
{
	const struct echo_options options = {
		.host_hz = HOST_HZ, .stream_hz = HOST_HZ, .short_memory = short_memory};
	uint64_t host = 5ull * HOST_HZ;

	h->order = order_new(short_memory);
	h->echo = echo_sync_new(&options);
	for (size_t i = 0; i < ROUNDS; i++) {
		struct echo_observation o = {.sent = {host}};
		size_t asked = random_below(10);

		host += 1000 + random_below(100000);
		guest += 500;
		o.guest_received = guest;
		host += 2000;
		guest += 100 + random_below(4000);
		o.guest_sent = guest;
		host += 1000 + random_below(100000);
		guest += random_below(1000);
		o.received.ticks = host;
		assert_int_equal(order_observe(h->order, o.guest_received, o.sent.ticks,
					       o.guest_sent, o.received.ticks, i % 3 == 0),
				 0);
		assert_true(echo_sync_add(h->echo, &o) >= 0);
		for (size_t k = 0; k < 10; k++) {
			host += PERIOD / 10;
			guest += random_below(3) * random_below(PERIOD / 10);
			if (k == asked) {
				h->x[i] = guest;
				h->y[i] = host;
			}
		}
		guest++;
	}
}

static void history_end(struct history *h)
{
	order_free(h->order);
	echo_sync_free(h->echo);
}

static void assert_holds(uint64_t middle, uint64_t err, uint64_t truth)
{
	uint64_t distance = truth > middle ? truth - middle : middle - truth;

	assert_true(distance <= err);
}

/* A short memory knows the newest rounds as well as a long one, and of older ones less. */
static void truth_inside_check(bool short_memory)
{
	static struct history h;
	const size_t fine = short_memory ? ROUNDS - 250 : 0;
	size_t bounded = 0;

	srandom(7);
	history_play(&h, 77, short_memory);
	assert_true(order_ever_unsteady(h.order));
	for (size_t i = 0; i < ROUNDS; i++) {
		struct host_tsc host;
		uint64_t y, err;

		assert_true(order_y(h.order, h.x[i], &y, &err));
		/* A clock that stood still reads one value for a while: the last is asked for here.
		 */
		if (i && h.x[i] > h.x[i - 1])
			assert_holds(y, err, h.y[i]);
		assert_true(echo_sync_to_host(h.echo, h.x[i], &host, &err));
		if (i + 1 < ROUNDS && h.x[i] > (i ? h.x[i - 1] : 0))
			assert_holds(host.ticks, err, h.y[i]);
		bounded += i >= fine && err < 2 * PERIOD;
	}
	assert_true(bounded > (ROUNDS - fine) * 9 / 10);
	assert_true(echo_sync_unsteady(h.echo));
	history_end(&h);
}

static void test_the_truth_lies_inside_for_any_rate(void **state)
{
	(void)state;
	truth_inside_check(false);
	truth_inside_check(true);
}

static void test_the_mean_rate_holds_the_truth(void **state)
{
	static struct history h;
	double min, max, truth;

	(void)state;
	srandom(8);
	history_play(&h, 1ull << 40, false);
	truth = (double)(h.y[ROUNDS - 1] - h.y[0]) / (double)(h.x[ROUNDS - 1] - h.x[0]);
	assert_true(order_slope(h.order, &min, &max));
	assert_true(min <= max && max / min < 1.0001);
	assert_true(min < truth * 1.01 && max > truth * 0.99);
	history_end(&h);
}

static void test_a_steady_clock_with_a_few_steps_is_steady(void **state)
{
	struct order *o = order_new(false);
	uint64_t step = 0;

	(void)state;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		bool stepped = i % 10 == 9;

		step += stepped * 1000000;
		order_observe(o, i * 1000 + 10, i * 1000 + step, i * 1000 + 20,
			      i * 1000 + step + 30, !stepped);
	}
	assert_false(order_ever_unsteady(o));
	assert_false(order_unsteady(o, 500000));
	order_free(o);
}

static void test_outside_one_side_is_open(void **state)
{
	struct order *o = order_new(false);
	uint64_t y, err;

	(void)state;
	assert_false(order_y(o, 5, &y, &err));
	order_observe(o, 100, 1000, 110, 1100, true);
	assert_true(order_y(o, 50, &y, &err));
	assert_int_equal(err, UINT64_MAX);
	assert_true(order_y(o, 200, &y, &err));
	assert_int_equal(err, UINT64_MAX);
	order_not_after(o, 300, 1500);
	assert_true(order_y(o, 200, &y, &err));
	assert_true(y >= 1000 && y <= 1500 && err <= 500);
	/* Set back: what was before is forgotten. */
	order_observe(o, 20, 2000, 30, 2100, false);
	assert_true(order_y(o, 25, &y, &err));
	assert_true(y >= 2000 && y <= 2100 && err <= 101);
	order_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_truth_lies_inside_for_any_rate),
		cmocka_unit_test(test_the_mean_rate_holds_the_truth),
		cmocka_unit_test(test_a_steady_clock_with_a_few_steps_is_steady),
		cmocka_unit_test(test_outside_one_side_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
