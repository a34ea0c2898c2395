/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the merge of the timeline with random sources, CPUs, disorder, watermarks and silences.
 * Each event comes out once and in order or is counted as late. Memory stays within its bound. With
 * true watermarks, no event is late, forced or moved. A failure prints its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/timeline/timeline.h"

enum { SOURCES = 4, CPUS = 6, STEPS = 4000, ROUNDS = 60 };

struct random {
	uint64_t state;
};

static uint64_t next(struct random *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state;
}

static uint64_t below(struct random *r, uint64_t limit)
{
	return next(r) % limit;
}

struct output {
	uint64_t seed;
	int64_t last;
	uint64_t n, lost;
	uint8_t *seen; /* by the event's arg0 */
};

static void collect_one(struct output *o, const struct timeline_event *e)
{
	if (e->t.ns < o->last)
		fail_msg("seed %llu: time ran back", (unsigned long long)o->seed);
	o->last = e->t.ns;
	if (e->event.type == VS_EVENT_LOST) {
		o->lost += e->event.arg0;
		return;
	}
	if (o->seen[e->event.arg0]++)
		fail_msg("seed %llu: event %llu came twice", (unsigned long long)o->seed,
			 (unsigned long long)e->event.arg0);
	o->n++;
}

static void collect(void *context, const struct timeline_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++)
		collect_one(context, &events[i]);
}

/* One run of the world; honest: sources promise only what they keep, and nobody falls silent. */
static void round_run(uint64_t seed, bool honest)
{
	struct random r = {seed * 0x9e3779b97f4a7c15ull + 1};
	size_t memory = (8 + below(&r, 40)) * 4096;
	struct timeline_options options = {
		.memory_bytes = honest ? 0 : memory,
		.silence_limit_ns = honest ? INT64_MAX : 1 + (int64_t)below(&r, 20000),
	};
	struct output o = {.seed = seed, .last = INT64_MIN, .seen = calloc(STEPS * 8, 1)};
	struct timeline *t = timeline_new(&options, collect, &o);
	int64_t now = 0, clock[SOURCES][CPUS] = {0};
	uint64_t pushed = 0;
	struct timeline_stats stats;

	assert_non_null(o.seen);
	assert_non_null(t);
	for (uint32_t s = 0; s < SOURCES; s++)
		assert_int_equal(timeline_add_source(t, s), 0);
	for (int step = 0; step < STEPS; step++) {
		uint32_t s = (uint32_t)below(&r, SOURCES);
		uint16_t cpu = (uint16_t)below(&r, CPUS);
		struct timeline_event batch[8];
		size_t n = below(&r, 9);

		now += (int64_t)below(&r, 40);
		if (!honest && s == 3 && step / 500 % 2)
			continue; /* silent now, with old events later */
		for (size_t i = 0; i < n; i++) {
			clock[s][cpu] += (int64_t)below(&r, 3); /* equal times are common */
			if (clock[s][cpu] > now)
				clock[s][cpu] = now;
			batch[i] = (struct timeline_event){
				.t = {clock[s][cpu]},
				.err_ns = (uint32_t)below(&r, 50),
				.source = s,
				.event = {.type = VS_EVENT_IRQ_ENTRY, .arg0 = pushed++},
			};
		}
		if (n > 2 && below(&r, 4) == 0) { /* a nested interrupt: neighbours swapped */
			struct timeline_event swap = batch[n - 1];

			batch[n - 1] = batch[n - 2];
			batch[n - 2] = swap;
		}
		assert_int_equal(timeline_push(t, s, cpu, batch, n), 0);
		if (below(&r, 8) == 0) {
			int64_t oldest = INT64_MAX;

			for (int c = 0; c < CPUS; c++) {
				if (clock[s][c] < oldest)
					oldest = clock[s][c];
			}
			if (!honest && below(&r, 16) == 0)
				oldest += 500; /* a lie */
			timeline_promise(t, s, (struct host_ns){oldest});
			timeline_run(t, (struct host_ns){now});
		}
		timeline_stats_get(t, &stats);
		if (!honest && stats.memory_bytes > memory)
			fail_msg("seed %llu: %zu bytes held, %zu allowed", (unsigned long long)seed,
				 stats.memory_bytes, memory);
	}
	timeline_finish(t);
	timeline_stats_get(t, &stats);
	assert_int_equal(stats.waiting_events, 0);
	assert_int_equal(stats.merged, o.n);
	assert_int_equal(stats.merged + stats.late, pushed);
	assert_true(o.lost <= stats.late);
	if (honest) {
		assert_int_equal(stats.late, 0);
		assert_int_equal(stats.forced, 0);
		assert_int_equal(stats.clamped, 0);
	}
	timeline_free(t);
	free(o.seen);
}

static void honest_sources_lose_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++)
		round_run(seed, true);
}

static void nothing_is_lost_uncounted_whatever_the_sources_do(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++)
		round_run(seed, false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest_sources_lose_nothing),
		cmocka_unit_test(nothing_is_lost_uncounted_whatever_the_sources_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
