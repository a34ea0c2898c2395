// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "guest-agent/send_queue.h"

struct dropped {
	size_t frames;
	uint64_t events;
	uint16_t last_cpu;
};

static void on_dropped(void *context, const struct send_item *item)
{
	struct dropped *d = context;

	d->frames++;
	d->events += item->events;
	d->last_cpu = item->cpu;
}

static void push(struct send_queue *q, enum send_class class, uint8_t mark, size_t len,
		 uint32_t events)
{
	const struct send_item item = {.class = class, .cpu = mark, .events = events};
	uint8_t *frame = malloc(len);

	memset(frame, mark, len);
	send_queue_push(q, &item, frame, len);
	free(frame);
}

/* Pops one frame: its mark, or -1 if none waits. */
static int pop(struct send_queue *q, struct send_item *item)
{
	struct byte_buffer out = {0};
	int mark = -1;

	if (send_queue_pop(q, item, &out) > 0) {
		mark = out.data[0];
		for (size_t i = 0; i < out.len; i++)
			assert_int_equal(out.data[i], mark);
	}
	byte_buffer_fini(&out);
	return mark;
}

static void both_classes_leave_in_the_order_they_came(void **state)
{
	struct send_queue *q = send_queue_new(10000, 10000, NULL, NULL);
	struct send_item item;

	(void)state;
	for (uint8_t i = 0; i < 20; i++)
		push(q, i % 3 ? SEND_BULK : SEND_CONTROL, i, 100 + i, i);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pop(q, &item), i);
		assert_int_equal(item.class, i % 3 ? SEND_BULK : SEND_CONTROL);
		assert_int_equal(item.events, i);
		assert_int_equal(item.cpu, i);
	}
	assert_int_equal(pop(q, &item), -1);
	send_queue_free(q);
}

static void a_full_queue_drops_the_oldest_bulk_and_keeps_control(void **state)
{
	struct dropped dropped = {0};
	struct send_queue *q = send_queue_new(1000, 10000, on_dropped, &dropped);
	struct send_queue_stats stats;
	struct send_item item;

	(void)state;
	push(q, SEND_CONTROL, 200, 50, 0);
	for (uint8_t i = 0; i < 20; i++)
		push(q, SEND_BULK, i, 176, 10); /* 200 with its entry: five fit */
	assert_int_equal(dropped.frames, 15);
	assert_int_equal(dropped.events, 150);
	assert_int_equal(dropped.last_cpu, 14);
	send_queue_stats_get(q, &stats);
	assert_int_equal(stats.dropped_events, 150);
	assert_int_equal(stats.dropped_frames[SEND_BULK], 15);
	assert_int_equal(stats.dropped_frames[SEND_CONTROL], 0);
	assert_int_equal(pop(q, &item), 200);
	for (int i = 15; i < 20; i++)
		assert_int_equal(pop(q, &item), i);
	assert_int_equal(pop(q, &item), -1);
	send_queue_free(q);
}

static void a_frame_larger_than_the_queue_drops_itself_only(void **state)
{
	struct dropped dropped = {0};
	struct send_queue *q = send_queue_new(1000, 1000, on_dropped, &dropped);
	struct send_item item;

	(void)state;
	push(q, SEND_BULK, 1, 100, 3);
	push(q, SEND_BULK, 2, 1001, 7);
	assert_int_equal(dropped.events, 7);
	assert_int_equal(pop(q, &item), 1);
	send_queue_free(q);
}

static void every_event_is_popped_waiting_or_dropped(void **state)
{
	struct dropped dropped = {0};
	struct send_queue *q = send_queue_new(5000, 700, on_dropped, &dropped);
	uint64_t pushed = 0, popped = 0;
	struct send_queue_stats stats;
	struct send_item item;
	uint32_t random = 1;

	(void)state;
	for (int i = 0; i < 50000; i++) {
		random = random * 1664525 + 1013904223;
		if (random >> 30) {
			uint32_t events = random >> 8 & 63;
			bool bulk = random >> 16 & 3;

			push(q, bulk ? SEND_BULK : SEND_CONTROL, (uint8_t)i,
			     1 + (random >> 20) % 400, bulk ? events : 0);
			pushed += bulk ? events : 0;
		} else if (pop(q, &item) >= 0) {
			popped += item.events;
		}
		send_queue_stats_get(q, &stats);
		assert_true(stats.waiting_bytes <= 5700);
	}
	while (pop(q, &item) >= 0)
		popped += item.events;
	assert_true(dropped.events > 0 && popped > 0);
	assert_int_equal(pushed, popped + dropped.events);
	assert_int_equal(stats.dropped_events, dropped.events);
	send_queue_free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_classes_leave_in_the_order_they_came),
		cmocka_unit_test(a_full_queue_drops_the_oldest_bulk_and_keeps_control),
		cmocka_unit_test(a_frame_larger_than_the_queue_drops_itself_only),
		cmocka_unit_test(every_event_is_popped_waiting_or_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
