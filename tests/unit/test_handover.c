/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the handover of events from one thread to another: complete and in order; settling waits
 * for the other thread. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "host-collector/engine/handover.h"

/* More than are ever on their way, and no multiple of what goes at once. */
enum { EVENTS = 100003, ADVANCE_EVERY = 777, SETTLE_EVERY = 9973 };
enum { VM = 1, FACTS_EVERY = 1999, FACTS_AT_ONCE = 150 };

struct seen {
	struct model *model;
	uint64_t events, advances, clocks, steals, disorder;
	int64_t last_ns;
	bool pause; /* the taker is slow at times */
};

static void instant_take(void *context, const struct host_instant *i)
{
	struct seen *s = context;

	if (i->event.arg0 != s->events)
		s->disorder++;
	s->events++;
	s->last_ns = i->t.ns;
	for (volatile int spin = 0; s->pause && spin < 200; spin++)
		;
}

static void clock_take(void *context, const struct guest_clock_reading *c)
{
	struct seen *s = context;

	if (c->t.ns != s->last_ns)
		s->disorder++;
	s->clocks++;
}

static void steal_take(void *context, const struct guest_steal *g)
{
	struct seen *s = context;

	if (g->t.ns != s->last_ns || g->steal_ns != s->events)
		s->disorder++;
	s->steals++;
}

static void advance_take(void *context, struct host_ns now)
{
	struct seen *s = context;

	if (now.ns != s->last_ns)
		s->disorder++;
	s->advances++;
}

struct reader {
	struct handover *handover;
	const struct seen *seen;
	uint64_t events, unsettled;
	int err;
};

/* Now and then many facts at one event. */
static void facts_push(struct reader *r, uint64_t i, struct host_ns t)
{
	struct handover_fact clock = {HANDOVER_CLOCK, .clock = {.vm = VM, .t = t}};
	struct handover_fact steal = {HANDOVER_STEAL,
				      .steal = {.vm = VM, .t = t, .steal_ns = i + 1}};

	if (i % FACTS_EVERY)
		return;
	handover_fact(r->handover, &clock);
	for (int k = 0; k < FACTS_AT_ONCE; k++)
		handover_fact(r->handover, &steal);
	handover_fact(r->handover, &(struct handover_fact){HANDOVER_WATCHDOG,
							   .watchdog = {VM, (uint32_t)i + 1}});
}

static void *events_push(void *context)
{
	struct reader *r = context;

	for (uint64_t i = 0; i < r->events; i++) {
		const struct timeline_event e = {
			.t = {1000 + (int64_t)i},
			.source = VS_SOURCE_HOST,
			.event = {.type = VS_EVENT_SCHED_WAKEUP, .cpu = 0, .arg0 = i},
		};

		handover_push(r->handover, &e, 1);
		if (i % ADVANCE_EVERY == 0)
			handover_fact(r->handover,
				      &(struct handover_fact){HANDOVER_ADVANCE, .now = e.t});
		facts_push(r, i, e.t);
		if (i % SETTLE_EVERY)
			continue;
		handover_settle(r->handover);
		if (r->seen->events != i + 1)
			r->unsettled++;
	}
	r->err = handover_end(r->handover);
	return NULL;
}

static void play(uint64_t events, bool slow)
{
	struct seen seen = {.model = model_new(), .pause = slow};
	const struct model_observer observer = {.host_instant = instant_take,
						.advance = advance_take,
						.guest_clock = clock_take,
						.guest_steal = steal_take,
						.context = &seen};
	const struct message_vm_info vm = {.vm = VM};
	const uint64_t facts = (events + FACTS_EVERY - 1) / FACTS_EVERY;
	struct reader r = {.seen = &seen, .events = events};
	pthread_t thread;

	assert_non_null(seen.model);
	assert_int_equal(model_observe(seen.model, &observer), 0);
	assert_int_equal(model_vm(seen.model, &vm), 0);
	assert_non_null(r.handover = handover_new(seen.model));
	assert_int_equal(pthread_create(&thread, NULL, events_push, &r), 0);
	handover_take(r.handover);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(seen.events, events);
	assert_int_equal(seen.advances, (events + ADVANCE_EVERY - 1) / ADVANCE_EVERY);
	assert_int_equal(seen.clocks, facts);
	assert_int_equal(seen.steals, facts * FACTS_AT_ONCE);
	if (facts)
		assert_int_equal(model_watchdog_ns(seen.model, VM),
				 ((facts - 1) * FACTS_EVERY + 1) * 1000000000);
	assert_int_equal(seen.disorder, 0);
	assert_int_equal(r.unsettled, 0);
	assert_int_equal(r.err, 0);
	handover_free(r.handover);
	model_free(seen.model);
}

static void all_comes_in_order(void **state)
{
	(void)state;
	play(EVENTS, false);
}

static void the_reader_waits_for_a_slow_taker(void **state)
{
	(void)state;
	play(EVENTS / 3, true);
}

static void nothing_is_an_end_too(void **state)
{
	(void)state;
	play(0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_comes_in_order),
		cmocka_unit_test(the_reader_waits_for_a_slow_taker),
		cmocka_unit_test(nothing_is_an_end_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
