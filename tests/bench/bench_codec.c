// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures the size of an event in a frame, and the speed of each step of encoding and decoding.
 * The events are generated, in a mix as on a busy guest CPU: tasks that wake each other, ticks with
 * softirqs, device interrupts and reschedule IPIs, with stamps of a 2.5 GHz TSC. For comparison,
 * the same records are compressed without encoding, by the same level of zstd.
 *
 * The speeds are medians of the rounds. Exit code 1: batches of 1,000 events or more need over 4
 * bytes per event.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/bench/figure.h"

enum { EVENTS = 1000000, TASKS = 40, ROUNDS = 5, TICK = 10000000 /* 4 ms */ };

struct mix {
	uint64_t seed, time, next_tick;
	int32_t current;
	int32_t tasks[TASKS];
	struct vs_event *events;
	size_t n;
};

static uint64_t mix_random(struct mix *m)
{
	m->seed ^= m->seed << 13;
	m->seed ^= m->seed >> 7;
	m->seed ^= m->seed << 17;
	return m->seed >> 11;
}

/* Returns a random duration with this mean: a fixed part plus an exponential part, as durations in
 * a kernel are distributed. */
static uint64_t mix_duration(struct mix *m, uint64_t mean)
{
	uint64_t octave = (uint64_t)__builtin_ctzll(mix_random(m) | 1 << 6);

	return mean / 4 + (mix_random(m) % mean << octave) / 4;
}

static void mix_event(struct mix *m, uint64_t after, uint16_t type, int32_t pid, int32_t pid2,
		      uint64_t arg0, uint64_t arg1)
{
	if (m->n == EVENTS)
		return;
	m->time += mix_duration(m, after);
	m->events[m->n] = (struct vs_event){
		.time = m->time,
		.seq = (uint32_t)m->n,
		.cpu = 1,
		.type = type,
		.pid = pid,
		.pid2 = pid2,
		.arg0 = arg0,
		.arg1 = arg1,
	};
	m->n++;
}

static void mix_softirq(struct mix *m, uint64_t number)
{
	mix_event(m, 800, VS_EVENT_SOFTIRQ_ENTRY, m->current, 0, number, 0);
	mix_event(m, 8000, VS_EVENT_SOFTIRQ_EXIT, m->current, 0, number, 0);
}

static void mix_wakeup(struct mix *m)
{
	int32_t task = m->tasks[mix_random(m) % TASKS];

	mix_event(m, 3000, VS_EVENT_SCHED_WAKEUP, task, m->current, mix_random(m) % 4 == 0, 120);
}

static void mix_switch(struct mix *m)
{
	bool idle = m->current && mix_random(m) % 3 == 0;
	int32_t next =
		idle ? 0 : m->tasks[mix_random(m) % 4 ? mix_random(m) % 3 : mix_random(m) % TASKS];
	uint64_t state = m->current && mix_random(m) % 5 ? VS_TASK_INTERRUPTIBLE : 0;
	uint64_t prio = next == m->tasks[7] ? 98 : 120;
	uint64_t old_prio = m->current == m->tasks[7] ? 98 : 120;

	mix_event(m, 2500, VS_EVENT_SCHED_SWITCH, m->current, next, state, old_prio | prio << 32);
	m->current = next;
}

static void mix_vector(struct mix *m, uint64_t vector, uint64_t number, bool wakes)
{
	mix_event(m, 6000, VS_EVENT_VECTOR_ENTRY, m->current, 0, vector, number);
	if (wakes)
		mix_wakeup(m);
	mix_event(m, 3000, VS_EVENT_VECTOR_EXIT, m->current, 0, vector, number);
}

static void mix_step(struct mix *m)
{
	uint64_t what = mix_random(m) % 100;

	if (m->time >= m->next_tick) {
		m->next_tick += TICK;
		mix_vector(m, VS_VECTOR_LOCAL_TIMER, 236, mix_random(m) % 2);
		mix_softirq(m, 1);
		if (mix_random(m) % 2)
			mix_softirq(m, 9);
	} else if (what < 60) {
		mix_wakeup(m);
		mix_switch(m);
	} else if (what < 75) {
		mix_vector(m, VS_VECTOR_RESCHEDULE, 253, false);
		mix_switch(m);
	} else if (what < 87) {
		mix_event(m, 9000, VS_EVENT_IRQ_ENTRY, m->current, 0, 24, 0);
		mix_event(m, 2000, VS_EVENT_IRQ_EXIT, m->current, 0, 24, 1);
		mix_softirq(m, 3);
	} else if (what < 92) {
		mix_vector(m, VS_VECTOR_CALL_FUNCTION_SINGLE, 251, false);
	} else if (what < 99) {
		mix_switch(m);
	} else {
		mix_event(m, 5000, VS_EVENT_SCHED_MIGRATE, m->tasks[mix_random(m) % TASKS],
			  m->current, 0, 1);
	}
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct bench {
	struct batch_encoder *encoder;
	struct batch_decoder *decoder;
	struct frame_writer *writer;
	struct frame_unpacker *unpacker;
	struct byte_buffer payload, frame;
};

enum step { ENCODE, COMPRESS, UNCOMPRESS, DECODE, STEPS };

struct figures {
	double s[STEPS][ROUNDS]; /* CPU seconds */
	size_t raw, wire, row_wire;
};

static bool bench_batch(struct bench *b, struct vs_event *events, size_t n, struct figures *f,
			int round)
{
	struct batch in = {.cpu = 1,
			   .time_err = 50,
			   .watermark = events[n - 1].time,
			   .emitted = events[n - 1].seq + 1,
			   .n_events = n,
			   .events = events};
	struct batch out;
	struct frame_view view;
	const uint8_t *payload;
	double t[5];
	size_t len;

	b->payload.len = b->frame.len = 0;
	t[0] = cpu_seconds();
	if (batch_encode(b->encoder, &in, &b->payload))
		return false;
	t[1] = cpu_seconds();
	if (frame_write(b->writer, FRAME_BATCH, b->payload.data, b->payload.len, &b->frame))
		return false;
	t[2] = cpu_seconds();
	if (frame_parse(b->frame.data, b->frame.len, &view) ||
	    frame_unpack(b->unpacker, &view, &payload, &len))
		return false;
	t[3] = cpu_seconds();
	if (batch_decode(b->decoder, payload, len, &out))
		return false;
	t[4] = cpu_seconds();
	if (out.n_events != n || memcmp(out.events, events, n * sizeof(*events)))
		return false;
	for (int step = 0; step < STEPS; step++)
		f->s[step][round] += t[step + 1] - t[step];
	f->raw += b->payload.len;
	f->wire += b->frame.len;
	b->frame.len = 0;
	if (frame_write(b->writer, FRAME_BATCH, (const uint8_t *)events, n * sizeof(*events),
			&b->frame))
		return false;
	f->row_wire += b->frame.len;
	return true;
}

/* number of events in a batch */
static const size_t sizes[] = {100, 1000, 4000, VS_BATCH_EVENTS_MAX};

static int bench_size(struct bench *b, struct vs_event *events, size_t batch)
{
	static const char *const steps[] = {"encode", "compress", "uncompress", "decode"};
	struct figures f = {0};
	double n = (double)EVENTS * ROUNDS, wire;
	char name[80];
	struct figure bytes = {.name = name,
			       .unit = "B",
			       .goal_is = batch < 1000 ? FIGURE_NO_GOAL : FIGURE_AT_MOST,
			       .goal = 4};
	struct figure speed = {.name = name, .unit = "M events/CPU-s"};
	bool good;

	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < EVENTS; i += batch)
			if (!bench_batch(b, events + i, EVENTS - i < batch ? EVENTS - i : batch, &f,
					 round)) {
				fprintf(stderr,
					"bench_codec: batch at event %zu does not survive\n", i);
				return 2;
			}
	wire = (double)f.wire / n;
	printf("batches of %zu: %.2f bytes per event packed, %.2f on the wire; the records themselves "
	       "with zstd -1: %.2f\n",
	       batch, (double)f.raw / n, wire, (double)f.row_wire / n);
	snprintf(name, sizeof(name), "wire, generated load, batches of %zu", batch);
	good = figure_print_one(&bytes, wire);
	for (int step = 0; step < STEPS; step++) {
		for (int round = 0; round < ROUNDS; round++)
			f.s[step][round] = EVENTS / f.s[step][round] / 1e6;
		snprintf(name, sizeof(name), "%s, batches of %zu", steps[step], batch);
		if (batch == sizes[1])
			figure_print(&speed, f.s[step], ROUNDS);
	}
	return !good;
}

int main(void)
{
	struct mix m = {.seed = 88172645463325252u, .time = (uint64_t)1 << 42};
	size_t types[VS_EVENT_TYPE_LIMIT] = {0};
	struct bench b = {
		.encoder = batch_encoder_new(),
		.decoder = batch_decoder_new(),
		.writer = frame_writer_new(1),
		.unpacker = frame_unpacker_new(),
	};
	int err = 2;

	m.events = malloc(EVENTS * sizeof(*m.events));
	if (!m.events || !b.encoder || !b.decoder || !b.writer || !b.unpacker)
		goto out;
	m.next_tick = m.time;
	for (int i = 0; i < TASKS; i++)
		m.tasks[i] = i < 10 ? 10 + i : 900 + (int32_t)(mix_random(&m) % 30000);
	while (m.n < EVENTS)
		mix_step(&m);
	for (size_t i = 0; i < EVENTS; i++)
		types[m.events[i].type]++;
	printf("mix, %% of %d events:", EVENTS);
#define EVENT(number, NAME, name, ...)                                                             \
	if (types[number])                                                                         \
		printf(" %s %.1f", #name, 100.0 * (double)types[number] / EVENTS);
#include "proto/events.def"
	printf("\n");
	err = 0;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes) && err < 2; i++)
		err |= bench_size(&b, m.events, sizes[i]);
	if (err == 1)
		fprintf(stderr, "bench_codec: more than 4 bytes per event on the wire\n");
out:
	free(m.events);
	batch_encoder_free(b.encoder);
	batch_decoder_free(b.decoder);
	frame_writer_free(b.writer);
	frame_unpacker_free(b.unpacker);
	byte_buffer_fini(&b.payload);
	byte_buffer_fini(&b.frame);
	return err;
}
