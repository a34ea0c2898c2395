/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the relation of a batch to the earlier ones: a continuation, a loss between them, a
 * repetition, or a restarted sender. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host-collector/timeline/continuity.h"

enum { EVENTS_MAX = 64, OLD = 1, NEW = 2 };

/* One batch: n events from sequence number `seq` on, one per tick from `time` on. */
struct step {
	uint64_t session_id, time;
	uint32_t seq;
	size_t n;
	enum continuity_verdict verdict;
	uint64_t missing;
};

/* Feeds the steps; after each the newest event becomes what the stream has told. */
static void play(const struct step *steps, size_t n_steps)
{
	struct continuity c = {0};
	struct continuity_cpu *cpu = continuity_cpu(&c, 0);

	assert_non_null(cpu);
	for (size_t i = 0; i < n_steps; i++) {
		struct vs_event events[EVENTS_MAX] = {{0}};
		struct batch b = {.n_events = steps[i].n, .events = events};
		uint64_t missing;

		for (size_t k = 0; k < b.n_events; k++)
			events[k] = (struct vs_event){.time = steps[i].time + k,
						      .seq = steps[i].seq + (uint32_t)k,
						      .type = VS_EVENT_SCHED_SWITCH};
		assert_int_equal(continuity_check(&c, cpu, &b, steps[i].session_id, &missing),
				 steps[i].verdict);
		assert_int_equal(missing, steps[i].missing);
		if (steps[i].verdict != CONTINUITY_REPEATS)
			cpu->floor_stream = events[b.n_events - 1].time;
	}
	continuity_fini(&c);
}

#define PLAY(...)                                                                                  \
	do {                                                                                       \
		const struct step steps[] = {__VA_ARGS__};                                         \
		play(steps, sizeof(steps) / sizeof(steps[0]));                                     \
	} while (0)

static void what_continues_is_whole_and_a_hole_is_counted(void **state)
{
	(void)state;
	PLAY({OLD, 100, 0, 10, CONTINUITY_WHOLE, 0}, {OLD, 110, 10, 10, CONTINUITY_WHOLE, 0},
	     {OLD, 150, 23, 10, CONTINUITY_GAP, 3});
}

static void a_new_connection_continues_the_old_one(void **state)
{
	(void)state;
	PLAY({OLD, 100, 0, 10, CONTINUITY_WHOLE, 0}, {NEW, 110, 10, 10, CONTINUITY_WHOLE, 0});
}

static void what_a_new_connection_tells_again_is_dropped(void **state)
{
	(void)state;
	PLAY({OLD, 100, 0, 10, CONTINUITY_WHOLE, 0}, {NEW, 100, 0, 10, CONTINUITY_REPEATS, 0},
	     {NEW, 110, 10, 10, CONTINUITY_WHOLE, 0});
}

/* However few or many events either life had: nothing is known of the time between. */
static void an_agent_that_was_started_again_leaves_a_gap(void **state)
{
	(void)state;
	PLAY({OLD, 100, 0, 50, CONTINUITY_WHOLE, 0}, {NEW, 900, 0, 10, CONTINUITY_GAP, 0},
	     {NEW, 910, 10, 10, CONTINUITY_WHOLE, 0});
	PLAY({OLD, 100, 0, 10, CONTINUITY_WHOLE, 0}, {NEW, 900, 0, 50, CONTINUITY_GAP, 0},
	     {NEW, 950, 50, 10, CONTINUITY_WHOLE, 0});
	PLAY({OLD, 100, 100000, 10, CONTINUITY_WHOLE, 0}, {NEW, 900, 7, 10, CONTINUITY_GAP, 0},
	     {NEW, 910, 17, 10, CONTINUITY_WHOLE, 0});
}

/* Its clock began at 0, too: what it tells is no repetition of what was told before its boot. */
static void a_machine_that_booted_again_leaves_a_gap(void **state)
{
	struct continuity c = {0};
	struct vs_event events[10];
	struct batch b = {.n_events = 10, .events = events, .emitted = 10};
	uint64_t missing;

	(void)state;
	assert_non_null(continuity_cpu(&c, 1));
	for (uint32_t i = 0; i < 10; i++)
		events[i] =
			(struct vs_event){.time = 5000 + i, .seq = i, .type = VS_EVENT_TASK_NAME};
	continuity_hello(&c, OLD, "one");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(continuity_check(&c, &c.cpus[i], &b, OLD, &missing),
				 CONTINUITY_WHOLE);
		c.cpus[i].floor_stream = 5009;
	}
	for (size_t i = 0; i < 10; i++)
		events[i].time -= 4000;
	continuity_hello(&c, NEW, "two");
	assert_int_equal(continuity_check(&c, &c.cpus[0], &b, NEW, &missing), CONTINUITY_GAP);
	assert_int_equal(missing, 0);
	assert_int_equal(c.cpus[0].floor_stream, 0);
	/* What had been sent before is still on its way. */
	events[0] = (struct vs_event){.time = 5010, .seq = 10, .type = VS_EVENT_TASK_NAME};
	b.n_events = 1;
	b.emitted = 11;
	assert_int_equal(continuity_check(&c, &c.cpus[1], &b, OLD, &missing), CONTINUITY_WHOLE);
	/* Another connection of the same boot, on a CPU that had said nothing since. */
	continuity_hello(&c, NEW + 1, "two");
	events[0] = (struct vs_event){.time = 1020, .seq = 3, .type = VS_EVENT_TASK_NAME};
	b.emitted = 4;
	assert_int_equal(continuity_check(&c, &c.cpus[1], &b, NEW + 1, &missing), CONTINUITY_GAP);
	events[0] = (struct vs_event){.time = 1030, .seq = 10, .type = VS_EVENT_TASK_NAME};
	b.emitted = 11;
	assert_int_equal(continuity_check(&c, &c.cpus[0], &b, NEW + 1, &missing), CONTINUITY_WHOLE);
	assert_int_equal(c.delivered, 33);
	assert_int_equal(continuity_lost(&c), 0);
	continuity_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_continues_is_whole_and_a_hole_is_counted),
		cmocka_unit_test(a_new_connection_continues_the_old_one),
		cmocka_unit_test(what_a_new_connection_tells_again_is_dropped),
		cmocka_unit_test(an_agent_that_was_started_again_leaves_a_gap),
		cmocka_unit_test(a_machine_that_booted_again_leaves_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
