/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/backend/event_queue.h"

static void add(struct event_queue *q, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++) {
		const struct vs_event event = {.time = i, .seq = i};

		assert_int_equal(event_queue_add(q, &event), 0);
	}
}

static void period(struct event_queue *q)
{
	for (int i = 0; i < EVENT_QUEUE_PERIOD; i++)
		event_queue_remove(q, 0);
}

static void keeps_the_order(void **state)
{
	struct event_queue q = {0};

	(void)state;
	add(&q, 0, 1000);
	event_queue_remove(&q, 300);
	add(&q, 1000, 10);
	assert_int_equal(q.n, 710);
	for (uint32_t i = 0; i < q.n; i++)
		assert_int_equal(q.events[i].seq, 300 + i);
	event_queue_remove(&q, 710);
	assert_int_equal(q.n, 0);
	event_queue_fini(&q);
	assert_null(q.events);
}

static void gives_back_what_a_burst_took(void **state)
{
	struct event_queue q = {0};

	(void)state;
	add(&q, 0, 1 << 20);
	event_queue_remove(&q, (1 << 20) - 5);
	period(&q); /* has the burst in it */
	assert_true(q.capacity >= 1 << 20);
	period(&q);
	assert_int_equal(q.capacity, EVENT_QUEUE_MIN);
	assert_int_equal(q.n, 5);
	assert_int_equal(q.events[0].seq, (1 << 20) - 5);
	assert_int_equal(q.events[4].seq, (1 << 20) - 1);
	event_queue_fini(&q);
}

static void an_empty_queue_keeps_little(void **state)
{
	struct event_queue q = {0};

	(void)state;
	add(&q, 0, 1 << 20);
	event_queue_remove(&q, 1 << 20);
	assert_int_equal(q.capacity, EVENT_QUEUE_KEPT);
	add(&q, 0, EVENT_QUEUE_KEPT + 1);
	assert_int_equal(q.events[EVENT_QUEUE_KEPT].seq, EVENT_QUEUE_KEPT);
	event_queue_fini(&q);
}

static void keeps_what_every_period_needs(void **state)
{
	struct event_queue q = {0};
	size_t capacity = 0;

	(void)state;
	for (int turn = 0; turn < 5; turn++) {
		add(&q, 0, 5000);
		event_queue_remove(&q, 5000);
		if (!turn)
			capacity = q.capacity;
		period(&q);
		assert_int_equal(q.capacity, capacity);
	}
	event_queue_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_order),
		cmocka_unit_test(gives_back_what_a_burst_took),
		cmocka_unit_test(an_empty_queue_keeps_little),
		cmocka_unit_test(keeps_what_every_period_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
