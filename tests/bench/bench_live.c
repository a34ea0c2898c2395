// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an event of a live stream costs the collector, from the batch that a decoder process or the
 * host's capture hands over: CPU time (user and system) per event for who shows it (watch), who
 * stores it (record) and who does both (the daemon). The events are busy_scene.h's.
 *
 * usage: bench_live [EVENTS]. Prints the median of 11 rounds and the smallest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "host-collector/engine/live.h"
#include "proto/codec.h"
#include "proto/frame_item.h"
#include "tests/bench/busy_scene.h"

enum { EVENTS = 1000000, ROUNDS = 11 };

enum use { WATCH, RECORD, DAEMON, USES };

static void must(bool ok)
{
	if (!ok) {
		fprintf(stderr, "bench_live: out of memory or a broken frame\n");
		exit(1);
	}
}

/* A frame as it arrives: the events of a batch, or the bytes of another message. */
struct arrival {
	uint32_t source;
	uint64_t tsc;
	struct frame_view frame;
	struct batch batch;
	bool is_batch;
};

struct stream {
	struct arrival *arrivals;
	size_t n, events;
	struct frame_unpacker *unpacker;
	struct batch_decoder *decoder;
};

static void *copy(const void *bytes, size_t len)
{
	void *mine = malloc(len + 1);

	must(mine);
	memcpy(mine, bytes, len);
	return mine;
}

static void frame_keep(void *context, uint32_t source, uint64_t tsc, const struct frame_view *frame)
{
	struct stream *s = context;
	struct arrival *a;
	const uint8_t *payload;
	size_t len;

	if (!(s->n & (s->n + 1)) || !s->arrivals) {
		s->arrivals = realloc(s->arrivals, 2 * (s->n + 1) * sizeof(*s->arrivals));
		must(s->arrivals);
	}
	a = &s->arrivals[s->n++];
	*a = (struct arrival){.source = source, .tsc = tsc, .frame = *frame};
	a->frame.bytes = copy(frame->bytes, frame->len);
	if (frame->header.kind != FRAME_BATCH)
		return;
	must(!frame_unpack(s->unpacker, frame, &payload, &len) &&
	     !batch_decode(s->decoder, payload, len, &a->batch));
	a->batch.events = copy(a->batch.events, a->batch.n_events * sizeof(*a->batch.events));
	a->is_batch = true;
	s->events += a->batch.n_events;
}

static void stream_make(struct stream *s, size_t n)
{
	struct timeline_event *events = busy_scene_new(n);
	const struct synth_options options = {
		.entry = frame_keep, .context = s, .guest_tsc_offset = 123456789};
	struct synth *synth = synth_new(&options);

	s->unpacker = frame_unpacker_new();
	s->decoder = batch_decoder_new();
	must(events && synth && s->unpacker && s->decoder);
	for (size_t i = 0; i < n; i++) {
		const struct timeline_event *e = &events[i];

		synth_at(synth, e->t.ns);
		if (e->source == VS_SOURCE_HOST)
			synth_host_event(synth, e->event.cpu, e->event);
		else
			synth_guest_event(synth, e->event.cpu, e->event);
	}
	synth_free(synth);
	free(events);
}

static double cpu_s(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void arrival_use(const struct arrival *a, struct frame_maker *maker, struct live *live,
			enum use use)
{
	struct frame_item item = frame_item_of(&a->frame);
	struct frame_view frame;

	if (a->is_batch) {
		item.batch = &a->batch;
		item.maker = maker;
		item.frame.len = 0;
	}
	if (use != WATCH)
		must(!frame_item_frame(&item, &frame));
	if (use != RECORD)
		must(!live_frame(live, a->source, a->tsc, &item));
}

static void on_incident(void *context, const struct report *report)
{
	(void)context, (void)report;
}

static double round_s(const struct stream *s, enum use use)
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

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"watch", "record", "daemon"};
	double s[USES][ROUNDS];
	struct stream stream = {0};

	stream_make(&stream, argc > 1 ? strtoul(argv[1], NULL, 10) : EVENTS);
	for (int round = 0; round < ROUNDS; round++) {
		for (int use = 0; use < USES; use++)
			s[use][round] = round_s(&stream, (enum use)use);
	}
	for (int use = 0; use < USES; use++) {
		qsort(s[use], ROUNDS, sizeof(s[use][0]), compare);
		printf("%-7s %6.1f ns of CPU per event, smallest %6.1f; %zu events\n", names[use],
		       s[use][ROUNDS / 2] / (double)stream.events * 1e9,
		       s[use][0] / (double)stream.events * 1e9, stream.events);
	}
	frame_unpacker_free(stream.unpacker);
	batch_decoder_free(stream.decoder);
	for (size_t i = 0; i < stream.n; i++) {
		free((void *)stream.arrivals[i].frame.bytes);
		free(stream.arrivals[i].batch.events);
	}
	free(stream.arrivals);
	return 0;
}
