/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "host-collector/timeline/timeline.h"
#include "proto/message.h"

struct log {
	struct timeline_event events[4096];
	size_t n;
};

static void log_events(void *context, const struct timeline_event *events, size_t n)
{
	struct log *log = context;

	assert_true(n > 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(log->n < sizeof(log->events) / sizeof(log->events[0]));
		if (log->n)
			assert_true(log->events[log->n - 1].t.ns <= events[i].t.ns);
		log->events[log->n++] = events[i];
	}
}

static struct timeline_event event_at(uint32_t source, uint16_t cpu, int64_t t)
{
	return (struct timeline_event){
		.t = {t},
		.source = source,
		.event = {.time = (uint64_t)t, .cpu = cpu, .type = VS_EVENT_SCHED_SWITCH}};
}

static void push(struct timeline *t, uint32_t source, uint16_t cpu, int64_t at)
{
	struct timeline_event e = event_at(source, cpu, at);

	assert_int_equal(timeline_push(t, source, cpu, &e, 1), 0);
}

static void assert_times(const struct log *log, const int64_t *want, size_t n)
{
	assert_int_equal(log->n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(log->events[i].t.ns, want[i]);
}

struct fixture {
	struct log log;
	struct timeline *timeline;
};

static int setup_with(void **state, size_t memory_bytes, int64_t silence_limit_ns)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct timeline_options options = {.memory_bytes = memory_bytes,
					   .silence_limit_ns = silence_limit_ns};

	f->timeline = timeline_new(&options, log_events, &f->log);
	assert_non_null(f->timeline);
	assert_int_equal(timeline_add_source(f->timeline, 0), 0);
	assert_int_equal(timeline_add_source(f->timeline, 1), 0);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, 0, 1000);
}

static int setup_patient(void **state)
{
	return setup_with(state, 0, INT64_MAX);
}

static int setup_small(void **state)
{
	return setup_with(state, 1, INT64_MAX);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	timeline_free(f->timeline);
	free(f);
	return 0;
}

static void nothing_leaves_before_every_source_has_promised(void **state)
{
	struct fixture *f = *state;
	static const int64_t first[] = {10}, all[] = {10, 15, 20};

	push(f->timeline, 0, 0, 10);
	push(f->timeline, 0, 1, 20);
	timeline_promise(f->timeline, 0, (struct host_ns){30});
	timeline_run(f->timeline, (struct host_ns){30});
	assert_int_equal(f->log.n, 0);
	timeline_promise(f->timeline, 1, (struct host_ns){12});
	timeline_run(f->timeline, (struct host_ns){31});
	assert_times(&f->log, first, 1);
	push(f->timeline, 1, 0, 15);
	timeline_promise(f->timeline, 1, (struct host_ns){30});
	timeline_run(f->timeline, (struct host_ns){32});
	assert_times(&f->log, all, 3);
}

static void a_promise_does_not_shrink(void **state)
{
	struct fixture *f = *state;

	push(f->timeline, 0, 0, 10);
	timeline_promise(f->timeline, 0, (struct host_ns){30});
	timeline_promise(f->timeline, 1, (struct host_ns){20});
	timeline_promise(f->timeline, 1, (struct host_ns){5});
	timeline_run(f->timeline, (struct host_ns){30});
	assert_int_equal(f->log.n, 1);
}

static void a_silent_guest_does_not_hold_the_host_beyond_the_limit(void **state)
{
	struct fixture *f = *state;
	struct timeline_stats stats;

	for (int64_t at = 100; at < 3000; at += 100) {
		push(f->timeline, 0, 0, at);
		timeline_promise(f->timeline, 0, (struct host_ns){at});
		timeline_run(f->timeline, (struct host_ns){at});
		/* the limit is 1000 */
		assert_int_equal(f->log.n, at <= 1000 ? 0 : (at - 1000) / 100);
	}
	timeline_stats_get(f->timeline, &stats);
	assert_int_equal(stats.forced, f->log.n);
}

static void what_comes_after_the_limit_is_late_and_leaves_a_gap(void **state)
{
	struct fixture *f = *state;
	struct timeline_stats stats;

	push(f->timeline, 0, 0, 5000);
	timeline_run(f->timeline, (struct host_ns){6000});
	push(f->timeline, 1, 3, 100);
	push(f->timeline, 1, 3, 200);
	push(f->timeline, 1, 3, 5500);
	timeline_finish(f->timeline);
	assert_int_equal(f->log.n, 3);
	assert_int_equal(f->log.events[1].event.type, VS_EVENT_LOST);
	assert_int_equal(f->log.events[1].event.arg0, 2);
	assert_int_equal(f->log.events[1].event.arg1, 5500);
	assert_int_equal(f->log.events[1].event.cpu, 3);
	assert_int_equal(f->log.events[1].source, 1);
	assert_int_equal(f->log.events[2].t.ns, 5500);
	timeline_stats_get(f->timeline, &stats);
	assert_int_equal(stats.late, 2);
	assert_int_equal(stats.merged, 2);
	assert_int_equal(timeline_late(f->timeline, 1), 2);
	assert_int_equal(timeline_late(f->timeline, 0), 0);
}

static void an_event_within_its_error_of_the_edge_is_kept_at_the_edge(void **state)
{
	struct fixture *f = *state;
	struct timeline_event e = event_at(1, 0, 4990);
	struct timeline_stats stats;

	push(f->timeline, 0, 0, 5000);
	timeline_run(f->timeline, (struct host_ns){6000});
	e.err_ns = 10;
	assert_int_equal(timeline_push(f->timeline, 1, 0, &e, 1), 0);
	timeline_finish(f->timeline);
	assert_int_equal(f->log.n, 2);
	assert_int_equal(f->log.events[1].t.ns, 5000);
	assert_int_equal(f->log.events[1].err_ns, 20);
	timeline_stats_get(f->timeline, &stats);
	assert_int_equal(stats.late, 0);
	assert_int_equal(stats.clamped, 1);
}

static void a_removed_source_is_not_waited_for(void **state)
{
	struct fixture *f = *state;

	push(f->timeline, 0, 0, 10);
	timeline_promise(f->timeline, 0, (struct host_ns){10});
	timeline_run(f->timeline, (struct host_ns){20});
	assert_int_equal(f->log.n, 0);
	timeline_remove_source(f->timeline, 1);
	timeline_run(f->timeline, (struct host_ns){20});
	assert_int_equal(f->log.n, 1);
}

static void events_a_little_out_of_order_on_one_cpu_are_put_right(void **state)
{
	struct fixture *f = *state;
	static const int64_t in[] = {50, 40, 45, 10, 60, 55}, out[] = {10, 40, 45, 50, 55, 60};

	for (size_t i = 0; i < 6; i++)
		push(f->timeline, 0, 0, in[i]);
	timeline_finish(f->timeline);
	assert_times(&f->log, out, 6);
}

static void reordering_reaches_across_chunks_but_not_without_bound(void **state)
{
	struct fixture *f = *state;
	struct timeline_stats stats;

	for (int64_t at = 1000; at < 1200; at++)
		push(f->timeline, 0, 0, at);
	push(f->timeline, 0, 0, 1150); /* 49 places back */
	push(f->timeline, 0, 0, 5);    /* its place is too far back */
	timeline_finish(f->timeline);
	assert_int_equal(f->log.n, 202);
	assert_int_equal(f->log.events[0].t.ns, 1000);
	timeline_stats_get(f->timeline, &stats);
	assert_int_equal(stats.clamped, 1);
}

static void equal_times_keep_their_order_on_a_cpu_and_put_the_host_first(void **state)
{
	struct fixture *f = *state;
	struct timeline_event e;

	for (uint32_t i = 0; i < 3; i++) {
		e = event_at(1, 0, 7);
		e.event.seq = i;
		assert_int_equal(timeline_push(f->timeline, 1, 0, &e, 1), 0);
	}
	push(f->timeline, 0, 0, 7);
	timeline_finish(f->timeline);
	assert_int_equal(f->log.n, 4);
	assert_int_equal(f->log.events[0].source, 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(f->log.events[1 + i].event.seq, i);
}

static void a_full_buffer_releases_the_oldest_and_stays_within_its_bound(void **state)
{
	struct fixture *f = *state;
	struct timeline_stats stats;

	for (int64_t at = 0; at < 4000; at++) {
		push(f->timeline, 0, (uint16_t)(at % 3), at);
		timeline_stats_get(f->timeline, &stats);
		assert_true(stats.memory_bytes <= 8 * 4096);
	}
	assert_true(stats.forced > 3000);
	assert_int_equal(stats.waiting_events + stats.merged, 4000);
	timeline_finish(f->timeline);
	assert_int_equal(f->log.n, 4000);
}

static void more_cpus_than_the_buffer_has_chunks_still_get_through(void **state)
{
	struct fixture *f = *state;

	for (uint16_t cpu = 0; cpu < VS_CPUS_MAX; cpu++)
		push(f->timeline, 0, cpu, 10 + cpu);
	timeline_finish(f->timeline);
	assert_int_equal(f->log.n, VS_CPUS_MAX);
}

static size_t memory_of(const struct timeline *t)
{
	struct timeline_stats stats;

	timeline_stats_get(t, &stats);
	return stats.memory_bytes;
}

static void what_a_burst_needed_is_given_back(void **state)
{
	static const int64_t s = 1000000000;
	struct fixture *f = *state;
	size_t burst;

	timeline_run(f->timeline, (struct host_ns){0});
	for (int64_t i = 0; i < 4000; i++)
		push(f->timeline, 0, 0, 1 + i);
	burst = memory_of(f->timeline);
	timeline_promise(f->timeline, 0, (struct host_ns){100 * s});
	timeline_promise(f->timeline, 1, (struct host_ns){100 * s});
	timeline_run(f->timeline, (struct host_ns){9 * s});
	assert_int_equal(f->log.n, 4000);
	assert_int_equal(memory_of(f->timeline), burst); /* another may come at once */
	timeline_run(f->timeline, (struct host_ns){11 * s});
	timeline_run(f->timeline, (struct host_ns){22 * s});
	timeline_run(f->timeline, (struct host_ns){33 * s});
	assert_true(memory_of(f->timeline) < burst / 4);
	push(f->timeline, 0, 0, 101 * s);
	timeline_promise(f->timeline, 0, (struct host_ns){102 * s});
	timeline_promise(f->timeline, 1, (struct host_ns){102 * s});
	timeline_run(f->timeline, (struct host_ns){102 * s});
	assert_int_equal(f->log.n, 4001);
}

static void bad_arguments_are_refused(void **state)
{
	struct fixture *f = *state;
	struct timeline_event e = event_at(9, 0, 1);

	assert_int_equal(timeline_push(f->timeline, 9, 0, &e, 1), -ENOENT);
	assert_int_equal(timeline_push(f->timeline, 1, VS_CPUS_MAX, &e, 1), -EINVAL);
}

#define CASE(name, up) cmocka_unit_test_setup_teardown(name, up, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(nothing_leaves_before_every_source_has_promised, setup_patient),
		CASE(a_promise_does_not_shrink, setup_patient),
		CASE(a_silent_guest_does_not_hold_the_host_beyond_the_limit, setup),
		CASE(what_comes_after_the_limit_is_late_and_leaves_a_gap, setup),
		CASE(an_event_within_its_error_of_the_edge_is_kept_at_the_edge, setup),
		CASE(a_removed_source_is_not_waited_for, setup_patient),
		CASE(events_a_little_out_of_order_on_one_cpu_are_put_right, setup),
		CASE(reordering_reaches_across_chunks_but_not_without_bound, setup),
		CASE(equal_times_keep_their_order_on_a_cpu_and_put_the_host_first, setup),
		CASE(a_full_buffer_releases_the_oldest_and_stays_within_its_bound, setup_small),
		CASE(more_cpus_than_the_buffer_has_chunks_still_get_through, setup_small),
		CASE(what_a_burst_needed_is_given_back, setup_patient),
		CASE(bad_arguments_are_refused, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
