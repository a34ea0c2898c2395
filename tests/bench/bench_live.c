// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures the CPU time (user and system) that the collector needs for each event of a live stream
 * (busy_stream.h), after a decoder process or the host's capture has delivered the batch: to show
 * the event (watch), to store it (record), and to do both (the daemon).
 *
 * Prints the medians of 11 rounds.
 *
 *   bench_live [EVENTS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "host-collector/engine/live.h"
#include "tests/bench/busy_stream.h"
#include "tests/bench/figure.h"

enum { EVENTS = 1000000, ROUNDS = 11 };

enum use { WATCH, RECORD, DAEMON, USES };

static void must(bool ok)
{
	if (!ok) {
		fprintf(stderr, "bench_live: out of memory or a broken frame\n");
		exit(1);
	}
}

static double cpu_s(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void arrival_use(const struct busy_arrival *a, struct frame_maker *maker, struct live *live,
			enum use use)
{
	struct frame_item item = busy_arrival_item(a, maker);
	struct frame_view frame;

	if (use != WATCH)
		must(!frame_item_frame(&item, &frame));
	if (use != RECORD)
		must(!live_frame(live, a->source, a->tsc, &item));
}

static void on_incident(void *context, const struct report *report)
{
	(void)context, (void)report;
}

static double round_s(const struct busy_stream *s, enum use use)
{
	const struct live_options options = {.than_ns = 100000000, .incident = on_incident};
	struct live *live = live_new(&options);
	struct frame_maker *maker = frame_maker_new();
	double began;

	must(live && maker);
	began = cpu_s();
	for (size_t i = 0; i < s->n; i++)
		arrival_use(&s->arrivals[i], maker, live, use);
	if (use != RECORD)
		must(!live_finish(live));
	began = cpu_s() - began;
	live_free(live);
	frame_maker_free(maker);
	return began;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"live event, watch", "live event, record",
					    "live event, daemon that records"};
	double s[USES][ROUNDS];
	struct busy_stream stream = {0};

	must(!busy_stream_make(&stream, argc > 1 ? strtoul(argv[1], NULL, 10) : EVENTS));
	for (int round = 0; round < ROUNDS; round++) {
		for (int use = 0; use < USES; use++)
			s[use][round] =
				round_s(&stream, (enum use)use) / (double)stream.events * 1e9;
	}
	for (int use = 0; use < USES; use++) {
		const struct figure f = {.name = names[use], .unit = "ns"};

		figure_print(&f, s[use], ROUNDS);
	}
	busy_stream_fini(&stream);
	return 0;
}
