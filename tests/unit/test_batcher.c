// SPDX-License-Identifier: GPL-2.0-only
/* Tests the batcher with a simulated kernel: rings that overflow, slots that are claimed but not
 * written yet, interrupts that nest in a program. Every frame is decoded and compared with the
 * simulation. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bpf/capture/batcher.h"
#include "proto/codec.h"

enum { N_CPUS = 3, RING_MAX = 40000, TICKS_PER_NS = 3, START_NS = 1000000000 };

struct slot {
	struct vs_event event;
	bool committed;
};

struct fake_cpu {
	struct slot slots[RING_MAX];
	size_t n;
	uint64_t attempted, dropped;
	bool in_softirq;
};

/* What a reader knows of a CPU. */
struct seen_cpu {
	uint64_t received, lost;
	uint64_t watermark, newest;
	uint32_t next_seq;
	struct batch last; /* totals only */
};

struct fixture {
	uint64_t now_ns;
	uint64_t paused_ns; /* the VMM stopped the guest for so long: its clocks, not its TSC */
	uint64_t unsure_ns; /* so long it takes to read the clocks */
	uint32_t tsc_cpu;   /* as the samples have it */
	uint32_t random;
	size_t during_drain; /* events of each CPU while one CPU's ring is read */
	size_t ring_limit;
	bool handlers; /* every other event begins a softirq or ends it */
	struct fake_cpu *cpus;
	struct seen_cpu seen[N_CPUS];
	struct vs_event lost;    /* the newest LOST marker seen */
	struct vs_event *events; /* of the last drain */
	size_t n_events, n_frames;

	struct frame_writer *writer;
	struct batcher *batcher;
	struct byte_buffer out;
	struct frame_reader reader;
	struct frame_unpacker *unpacker;
	struct batch_decoder *decoder;
};

static uint64_t tsc_at(uint64_t ns)
{
	return ns * TICKS_PER_NS;
}

static void emit(struct fixture *f, size_t cpu, size_t n);

static uint32_t draw(struct fixture *f, uint32_t below)
{
	f->random = f->random * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)f->random * below >> 32);
}

static int fake_sample(void *context, struct clock_sample *out)
{
	struct fixture *f = context;
	uint64_t begin_ns = f->now_ns + 100;

	memset(out, 0, sizeof(*out));
	out->tsc = tsc_at(begin_ns + f->unsure_ns / 2);
	out->tsc_width = 30 + tsc_at(f->unsure_ns);
	out->tsc_cpu = f->tsc_cpu;
	out->monotonic_ns = out->raw_ns = out->realtime_ns =
		begin_ns + draw(f, (uint32_t)f->unsure_ns) - f->paused_ns;
	f->now_ns = begin_ns + f->unsure_ns + 100;
	return 0;
}

static int fake_cpu_stats(void *context, size_t cpu, struct capture_cpu_stats *out)
{
	struct fixture *f = context;

	out->emitted = f->cpus[cpu].attempted;
	out->dropped = f->cpus[cpu].dropped;
	return 0;
}

static long fake_drain(void *context, const struct capture_sink *sink)
{
	struct fixture *f = context;
	struct vs_event *run = malloc(RING_MAX * sizeof(*run));
	long total = 0;

	for (uint16_t cpu = 0; cpu < N_CPUS; cpu++) {
		struct fake_cpu *k = &f->cpus[cpu];
		size_t n = 0;

		for (size_t i = 0; i < f->during_drain * N_CPUS; i++)
			emit(f, i % N_CPUS, 1);
		while (n < k->n && k->slots[n].committed) {
			run[n] = k->slots[n].event;
			n++;
		}
		if (n)
			sink->events(sink->context, cpu, run, n);
		k->n -= n;
		memmove(k->slots, k->slots + n, k->n * sizeof(*k->slots));
		total += (long)n;
	}
	free(run);
	return total;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct batcher_source source = {
		.drain = fake_drain,
		.cpu_stats = fake_cpu_stats,
		.sample = fake_sample,
		.n_cpus = N_CPUS,
		.context = f,
	};

	f->now_ns = START_NS;
	f->ring_limit = RING_MAX;
	f->cpus = calloc(N_CPUS, sizeof(*f->cpus));
	f->events = calloc(RING_MAX * N_CPUS * 2, sizeof(*f->events));
	f->writer = frame_writer_new(7);
	f->batcher = batcher_new_from(&source, f->writer);
	frame_reader_init(&f->reader);
	f->unpacker = frame_unpacker_new();
	f->decoder = batch_decoder_new();
	*state = f;
	return !f->batcher;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	batcher_free(f->batcher);
	frame_writer_free(f->writer);
	frame_reader_fini(&f->reader);
	frame_unpacker_free(f->unpacker);
	batch_decoder_free(f->decoder);
	byte_buffer_fini(&f->out);
	free(f->cpus);
	free(f->events);
	free(f);
	return 0;
}

/* Claims a slot; NULL if the ring is full, which is a drop. */
static struct slot *claim(struct fixture *f, size_t cpu)
{
	struct fake_cpu *k = &f->cpus[cpu];
	enum vs_event_type type = VS_EVENT_SCHED_SWITCH;
	struct slot *slot;

	f->now_ns += 50;
	if (f->handlers && (k->in_softirq || draw(f, 2))) {
		type = k->in_softirq ? VS_EVENT_SOFTIRQ_EXIT : VS_EVENT_SOFTIRQ_ENTRY;
		k->in_softirq = !k->in_softirq && draw(f, 8);
	}
	if (k->n == f->ring_limit) {
		k->attempted++;
		k->dropped++;
		return NULL;
	}
	slot = &k->slots[k->n++];
	*slot = (struct slot){
		.event = {.seq = (uint32_t)k->attempted++,
			  .cpu = (uint16_t)cpu,
			  .type = type,
			  .pid = (int32_t)cpu + 100},
	};
	return slot;
}

static void commit(struct fixture *f, struct slot *slot)
{
	f->now_ns += 50;
	slot->event.time = f->now_ns - f->paused_ns;
	slot->event.arg0 = f->handlers ? 0 : slot->event.time;
	slot->committed = true;
}

static void emit(struct fixture *f, size_t cpu, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct slot *slot = claim(f, cpu);

		if (slot)
			commit(f, slot);
	}
}

static void batch_check(struct fixture *f, const struct batch *batch)
{
	struct seen_cpu *seen = &f->seen[batch->cpu];

	assert_in_range(batch->n_events, 1, VS_BATCH_EVENTS_MAX);
	for (size_t i = 0; i < batch->n_events; i++) {
		const struct vs_event *event = &batch->events[i];

		assert_int_equal(event->cpu, batch->cpu);
		assert_true(event->time >= seen->watermark);
		assert_true(i == 0 || event->time >= batch->events[i - 1].time);
		if (event->type == VS_EVENT_LOST) {
			f->lost = *event;
			seen->lost += event->arg0;
		} else {
			seen->received++;
		}
		f->events[f->n_events++] = *event;
	}
	assert_true(batch->watermark >= seen->watermark);
	seen->watermark = batch->watermark;
	seen->last = *batch;
	assert_int_equal(batch->emitted,
			 seen->received + batch->dropped_kernel + batch->dropped_user);
	assert_int_equal(batch->dropped_kernel, seen->lost);
}

static long drain(struct fixture *f)
{
	const struct batcher_frame *frames;
	struct frame_view view;
	size_t n_frames, at = 0;
	uint64_t in_frames = 0;
	long n;

	f->out.len = 0;
	f->n_events = 0;
	n = batcher_drain(f->batcher, &f->out, NULL);
	assert_true(n >= 0);
	assert_int_equal(frame_reader_push(&f->reader, f->out.data, f->out.len), 0);
	frames = batcher_frames(f->batcher, &n_frames);
	for (f->n_frames = 0; frame_reader_next(&f->reader, &view) > 0; f->n_frames++) {
		const uint8_t *payload;
		struct batch batch;
		size_t len, good = 0;

		assert_true(f->n_frames < n_frames);
		assert_int_equal(view.header.kind, FRAME_BATCH);
		assert_int_equal(frame_unpack(f->unpacker, &view, &payload, &len), 0);
		assert_int_equal(batch_decode(f->decoder, payload, len, &batch), 0);
		batch_check(f, &batch);
		for (size_t i = 0; i < batch.n_events; i++)
			good += batch.events[i].type != VS_EVENT_LOST;
		assert_int_equal(frames[f->n_frames].offset, at);
		assert_int_equal(frames[f->n_frames].len, view.len);
		assert_int_equal(frames[f->n_frames].cpu, batch.cpu);
		assert_int_equal(frames[f->n_frames].events, good);
		at += view.len;
		in_frames += good;
	}
	assert_int_equal(f->n_frames, n_frames);
	assert_int_equal(in_frames, n);
	return n;
}

static void stamps_are_tsc_in_time_order(void **state)
{
	struct fixture *f = *state;
	uint64_t first;

	first = tsc_at(f->now_ns);
	emit(f, 1, 100);
	assert_int_equal(batcher_pending(f->batcher), 100);
	assert_int_equal(drain(f), 100);
	assert_int_equal(batcher_pending(f->batcher), 0);
	assert_int_equal(f->n_frames, 1);
	for (size_t i = 0; i < 100; i++) {
		uint64_t truth = first + tsc_at(100 * (i + 1)), got = f->events[i].time;

		assert_true((got > truth ? got - truth : truth - got) <= f->seen[1].last.time_err);
	}
	assert_true(f->seen[1].last.time_err < tsc_at(1000));
}

/* Of the values of the TSC that stand for one ns, the one with most low bits 0. */
static void times_are_distinct_without_noise(void **state)
{
	struct fixture *f = *state;

	emit(f, 1, 100);
	assert_int_equal(drain(f), 100);
	for (size_t i = 0; i < 100; i++) {
		assert_int_equal(f->events[i].time % 2, 0);
		assert_true(!i || f->events[i].time > f->events[i - 1].time);
	}
}

static uint32_t drained_tsc_cpu(struct fixture *f)
{
	emit(f, 1, 10);
	assert_int_equal(drain(f), 10);
	return f->seen[1].last.tsc_cpu;
}

/* Only if it may, and only if both samples around the stamps were read there. */
static void batches_name_the_cpu_of_their_samples(void **state)
{
	struct fixture *f = *state;

	f->tsc_cpu = 3;
	drained_tsc_cpu(f);
	assert_int_equal(drained_tsc_cpu(f), 0);
	batcher_name_tsc_cpu(f->batcher, true);
	assert_int_equal(drained_tsc_cpu(f), 3);
	f->tsc_cpu = 2; /* the sender moved */
	assert_int_equal(drained_tsc_cpu(f), 0);
	assert_int_equal(drained_tsc_cpu(f), 2);
	f->tsc_cpu = 0;
	drained_tsc_cpu(f);
	assert_int_equal(drained_tsc_cpu(f), 0);
	batcher_name_tsc_cpu(f->batcher, false);
	f->tsc_cpu = 2;
	drained_tsc_cpu(f);
	assert_int_equal(drained_tsc_cpu(f), 0);
}

static int by_stamp(const void *a, const void *b)
{
	const struct vs_event *x = a, *y = b;

	return (x->arg0 > y->arg0) - (x->arg0 < y->arg0);
}

/* However unsure each reading of the clocks is: what another CPU did before stays before. */
static void cpus_keep_the_order_of_their_stamps(void **state)
{
	enum { DRAINS = 200, EVENTS_MAX = DRAINS * 100 };
	static struct vs_event all[EVENTS_MAX];
	struct fixture *f = *state;
	size_t n = 0;

	f->unsure_ns = 20000;
	f->during_drain = 3;
	for (int i = 0; i < DRAINS; i++) {
		f->now_ns += draw(f, 1000000);
		drain(f);
		for (size_t e = 0; e < f->n_events && n < EVENTS_MAX; e++)
			all[n++] = f->events[e];
	}
	assert_true(n > DRAINS * 20);
	qsort(all, n, sizeof(*all), by_stamp);
	for (size_t i = 1; i < n; i++)
		assert_true(all[i].time >= all[i - 1].time);
}

static void a_pause_by_the_vmm_is_inside_the_bound(void **state)
{
	const uint64_t ms = 1000000;
	struct fixture *f = *state;
	uint64_t truth[2], last;

	for (int i = 0; i < 5; i++) {
		emit(f, 1, 1);
		f->now_ns += 20 * ms;
		assert_int_equal(drain(f), 1);
		assert_true(f->seen[1].last.time_err < tsc_at(100000));
	}
	f->now_ns += 5 * ms;
	emit(f, 1, 1);
	truth[0] = tsc_at(f->now_ns);
	f->now_ns += 700 * ms;
	f->paused_ns += 700 * ms;
	emit(f, 1, 1);
	truth[1] = tsc_at(f->now_ns);
	f->now_ns += 15 * ms;
	assert_int_equal(drain(f), 2);
	for (size_t i = 0; i < 2; i++) {
		uint64_t got = f->events[i].time;

		assert_true((got > truth[i] ? got - truth[i] : truth[i] - got) <=
			    f->seen[1].last.time_err);
	}
	f->now_ns += 20 * ms;
	last = tsc_at(f->now_ns);
	emit(f, 1, 1);
	assert_int_equal(drain(f), 1);
	assert_true(f->seen[1].last.time_err < tsc_at(100000));
	assert_true(f->events[0].time + tsc_at(100000) > last);
}

static void a_hole_in_seq_is_a_lost_marker_between_its_neighbours(void **state)
{
	struct fixture *f = *state;
	struct batcher_totals totals;

	emit(f, 0, 5);
	f->ring_limit = 5;
	emit(f, 0, 7);
	f->ring_limit = RING_MAX;
	emit(f, 0, 3);
	assert_int_equal(drain(f), 8);
	assert_int_equal(f->lost.arg0, 7);
	assert_int_equal(f->lost.seq, 5);
	assert_int_equal(f->lost.time, f->events[4].time);
	assert_int_equal(f->lost.arg1, f->events[6].time);
	batcher_totals_get(f->batcher, &totals);
	assert_int_equal(totals.emitted, 15);
	assert_int_equal(totals.delivered, 8);
	assert_int_equal(totals.dropped_kernel, 7);
	assert_int_equal(totals.dropped_user, 0);
}

static void a_loss_at_the_end_is_told_before_the_next_event_comes(void **state)
{
	struct fixture *f = *state;

	f->ring_limit = 5;
	emit(f, 0, 9);
	assert_int_equal(drain(f), 5);
	assert_int_equal(f->lost.arg0, 4);
	assert_int_equal(f->lost.arg1, 0);
	/* Nothing is told twice. */
	emit(f, 0, 1);
	assert_int_equal(drain(f), 1);
	assert_int_equal(f->seen[0].lost, 4);
	assert_int_equal(f->seen[0].last.emitted, 10);
}

/* Nobody knows since when; but not since the machine's boot. */
static void a_loss_before_the_first_event_began_with_the_batcher(void **state)
{
	struct fixture *f = *state;
	uint64_t now = tsc_at(f->now_ns);

	f->ring_limit = 0;
	emit(f, 0, 3);
	assert_int_equal(drain(f), 0);
	assert_int_equal(f->lost.arg0, 3);
	assert_true(f->lost.time > 0 && f->lost.time <= now);
	assert_true(now - f->lost.time < tsc_at(1000000));
}

static void a_slot_being_written_holds_the_watermark_and_is_not_lost(void **state)
{
	struct fixture *f = *state;
	uint64_t promise, written_tsc;
	struct slot *slot;

	emit(f, 0, 3);
	drain(f);
	promise = batcher_promise(f->batcher);
	slot = claim(f, 0);
	slot->event.time = f->now_ns; /* stamped, but the vCPU is descheduled before the commit */
	written_tsc = tsc_at(slot->event.time);
	emit(f, 1, 3);
	assert_int_equal(drain(f), 3);
	assert_int_equal(batcher_promise(f->batcher), promise);
	assert_true(promise <= written_tsc);
	f->cpus[0].slots[0].committed = true;
	assert_int_equal(drain(f), 1);
	assert_int_equal(f->seen[0].lost, 0);
	assert_true(batcher_promise(f->batcher) > written_tsc);
}

static void an_interrupt_that_overtook_its_victim_is_put_right(void **state)
{
	struct fixture *f = *state;
	struct slot *outer;

	emit(f, 0, 2);
	outer = claim(f, 0);
	emit(f, 0, 1);
	commit(f, outer);
	emit(f, 0, 2);
	assert_int_equal(drain(f), 6);
	assert_int_equal(f->n_events, 6);
	assert_int_equal(f->seen[0].lost, 0);
	assert_int_equal(f->events[2].seq, 3);
	assert_int_equal(f->events[3].seq, 2);
}

static void long_runs_are_split_and_keep_every_promise(void **state)
{
	struct fixture *f = *state;
	struct slot *outer;

	/* An inversion right at the stage's edge. */
	emit(f, 0, VS_BATCH_EVENTS_MAX - 1);
	outer = claim(f, 0);
	emit(f, 0, 2);
	commit(f, outer);
	emit(f, 0, 2 * VS_BATCH_EVENTS_MAX);
	assert_int_equal(drain(f), 3 * VS_BATCH_EVENTS_MAX + 2);
	assert_true(f->n_frames >= 4);
	assert_int_equal(f->seen[0].lost, 0);
}

static void idle_cpus_make_no_frame_but_the_promise_moves(void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	assert_int_equal(drain(f), 0);
	before = batcher_promise(f->batcher);
	f->now_ns += 20000000;
	assert_int_equal(drain(f), 0);
	assert_int_equal(f->n_frames, 0);
	assert_int_equal(f->out.len, 0);
	assert_true(batcher_promise(f->batcher) >= before + tsc_at(20000000));
	assert_true(batcher_promise(f->batcher) <= tsc_at(f->now_ns));
}

static void what_the_owner_drops_is_no_longer_delivered(void **state)
{
	struct fixture *f = *state;
	struct batcher_totals totals;

	emit(f, 2, 10);
	drain(f);
	batcher_drop(f->batcher, 2, 10);
	batcher_drop(f->batcher, N_CPUS, 99); /* no such CPU */
	batcher_totals_get(f->batcher, &totals);
	assert_int_equal(totals.delivered, 0);
	assert_int_equal(totals.dropped_user, 10);
	assert_int_equal(totals.emitted, 10);
}

static void stack_received(void *context, const struct capture_stack *stack, uint64_t err_ticks)
{
	uint64_t *out = context;

	out[0] = stack->time;
	out[1] = err_ticks;
}

static uint64_t stack_ns;

static long stack_drain(void *context, const struct capture_sink *sink)
{
	struct fixture *f = context;

	f->now_ns += 5000;
	sink->stack(sink->context, &(struct capture_stack){.time = stack_ns = f->now_ns, .tid = 5});
	return 0;
}

static void stacks_pass_with_converted_time(void **state)
{
	struct fixture *f = *state;
	struct batcher_source source = {
		.drain = stack_drain,
		.cpu_stats = fake_cpu_stats,
		.sample = fake_sample,
		.n_cpus = N_CPUS,
		.context = f,
	};
	struct batcher *b = batcher_new_from(&source, f->writer);
	uint64_t got[2] = {0, 0};
	struct batcher_stack_sink stacks = {.stack = stack_received, .context = got};
	uint64_t truth;

	assert_int_equal(batcher_drain(b, &f->out, &stacks), 0);
	truth = tsc_at(stack_ns);
	assert_true((got[0] > truth ? got[0] - truth : truth - got[0]) <= got[1]);
	batcher_free(b);
}

struct tasks_seen {
	size_t n;
	struct vs_event events[4];
	uint64_t monotonic_ns[4];
};

static void task_received(void *context, const struct vs_event *e, uint64_t monotonic_ns)
{
	struct tasks_seen *seen = context;

	assert_true(seen->n < 4);
	seen->events[seen->n] = *e;
	seen->monotonic_ns[seen->n++] = monotonic_ns;
}

static uint64_t task_ns;

static long task_drain(void *context, const struct capture_sink *sink)
{
	static const uint16_t types[] = {VS_EVENT_TASK_NAME, VS_EVENT_SCHED_WAKEUP,
					 VS_EVENT_SCHED_SWITCH};
	struct fixture *f = context;
	struct vs_event events[3] = {0};

	f->now_ns += 5000;
	task_ns = f->now_ns;
	for (uint32_t i = 0; i < 3; i++)
		events[i] = (struct vs_event){
			.time = task_ns, .seq = i, .type = types[i], .pid = 5, .pid2 = 6};
	sink->events(sink->context, 0, events, 3);
	return 3;
}

static void names_and_switches_are_handed_over_as_well(void **state)
{
	struct fixture *f = *state;
	struct batcher_source source = {
		.drain = task_drain,
		.cpu_stats = fake_cpu_stats,
		.sample = fake_sample,
		.n_cpus = N_CPUS,
		.context = f,
	};
	struct batcher *b = batcher_new_from(&source, f->writer);
	struct tasks_seen seen = {0};
	struct batcher_stack_sink sink = {.context = &seen, .task = task_received};
	uint64_t truth;

	assert_int_equal(batcher_drain(b, &f->out, &sink), 3);
	truth = tsc_at(task_ns);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.events[0].type, VS_EVENT_TASK_NAME);
	assert_int_equal(seen.events[1].type, VS_EVENT_SCHED_SWITCH);
	for (size_t i = 0; i < seen.n; i++) {
		const uint64_t t = seen.events[i].time;

		assert_int_equal(seen.monotonic_ns[i], task_ns);
		assert_true((t > truth ? t - truth : truth - t) < tsc_at(100000));
	}
	batcher_free(b);
}

struct batches_seen {
	size_t n_batches, n_events;
	int result;
};

static int batch_received(void *context, const struct batch *batch)
{
	struct batches_seen *seen = context;

	if (seen->result)
		return seen->result;
	assert_int_equal(batch->cpu, 1);
	for (size_t i = 0; i < batch->n_events; i++)
		assert_int_equal(batch->events[i].seq, seen->n_events++);
	seen->n_batches++;
	return 0;
}

static void batches_are_handed_over_in_place_of_frames(void **state)
{
	struct fixture *f = *state;
	struct batches_seen seen = {0};
	const struct batcher_stack_sink sink = {.context = &seen, .batch = batch_received};
	struct batcher_totals totals;
	size_t n_frames;

	f->out.len = 0;
	emit(f, 1, 100);
	assert_int_equal(batcher_drain(f->batcher, &f->out, &sink), 100);
	assert_int_equal(seen.n_batches, 1);
	assert_int_equal(seen.n_events, 100);
	assert_int_equal(f->out.len, 0);
	batcher_frames(f->batcher, &n_frames);
	assert_int_equal(n_frames, 0);
	/* What its taker could not keep is counted. */
	seen.result = -ENOMEM;
	emit(f, 1, 7);
	assert_int_equal(batcher_drain(f->batcher, &f->out, &sink), -ENOMEM);
	batcher_totals_get(f->batcher, &totals);
	assert_int_equal(totals.emitted, 107);
	assert_int_equal(totals.delivered, 100);
	assert_int_equal(totals.dropped_user, 7);
}

/* Whatever the kernel does, in the end every event is received, counted or told lost. */
static void accounting_check(struct fixture *f)
{
	uint64_t counted, attempted = 0, received = 0, lost = 0;
	struct batcher_totals totals;
	uint32_t random = 12345;

	f->ring_limit = 50;
	for (int step = 0; step < 20000; step++) {
		size_t cpu = (random = random * 1664525 + 1013904223) >> 24 & 1;
		unsigned int what = random >> 16 & 31;
		struct fake_cpu *k = &f->cpus[cpu];

		if (what < 24) {
			emit(f, cpu, 1 + what % 4);
		} else if (what < 28) {
			struct slot *outer = claim(f, cpu);

			if (what & 1)
				emit(f, cpu, 1);
			if (what & 2 && outer)
				commit(f, outer);
		} else if (what < 30) {
			for (size_t i = 0; i < k->n; i++)
				if (!k->slots[i].committed)
					commit(f, &k->slots[i]);
		} else {
			drain(f);
		}
	}
	for (size_t cpu = 0; cpu < N_CPUS; cpu++)
		for (size_t i = 0; i < f->cpus[cpu].n; i++)
			if (!f->cpus[cpu].slots[i].committed)
				commit(f, &f->cpus[cpu].slots[i]);
	drain(f);
	batcher_totals_get(f->batcher, &totals);
	for (size_t cpu = 0; cpu < N_CPUS; cpu++) {
		attempted += f->cpus[cpu].attempted;
		received += f->seen[cpu].received;
		lost += f->seen[cpu].lost;
		assert_int_equal(f->seen[cpu].lost, f->cpus[cpu].dropped);
	}
	counted = 2 * batcher_aggregated(f->batcher)[EVENT_CLASS_SOFTIRQS].count;
	assert_true(lost > 100);
	assert_int_equal(counted > 0, f->handlers);
	assert_int_equal(attempted, received + lost + counted);
	assert_int_equal(totals.emitted, attempted - counted);
	assert_int_equal(totals.delivered, received);
	assert_int_equal(totals.dropped_kernel, lost);
}

static void accounting_survives_any_order_of_events(void **state)
{
	accounting_check(*state);
}

static void accounting_survives_handlers_that_are_only_counted(void **state)
{
	struct fixture *f = *state;

	f->handlers = true;
	batcher_summarise(f->batcher, 1000);
	accounting_check(f);
}

/* A softirq of `ns` with `inside` other events. */
static void softirq(struct fixture *f, size_t cpu, uint64_t ns, size_t inside)
{
	struct slot *slot = claim(f, cpu);

	commit(f, slot);
	slot->event.type = VS_EVENT_SOFTIRQ_ENTRY;
	slot->event.arg0 = 3;
	emit(f, cpu, inside);
	f->now_ns += ns;
	slot = claim(f, cpu);
	commit(f, slot);
	slot->event.type = VS_EVENT_SOFTIRQ_EXIT;
	slot->event.arg0 = 3;
}

static void short_handlers_are_counted_and_their_numbers_closed(void **state)
{
	struct fixture *f = *state;
	const struct message_aggregated *u = &batcher_aggregated(f->batcher)[EVENT_CLASS_SOFTIRQS];
	struct batcher_totals totals;
	uint64_t promise;

	softirq(f, 0, 0, 0); /* at detail */
	assert_int_equal(drain(f), 2);
	batcher_summarise(f->batcher, 10000);
	softirq(f, 0, 300, 0);
	emit(f, 0, 1);
	softirq(f, 0, 5000, 0);
	softirq(f, 0, 9900, 0); /* no shorter: told */
	softirq(f, 0, 10, 1);
	assert_int_equal(drain(f), 6);
	assert_int_equal(u->count, 2);
	assert_int_equal(u->total_ns, 300 + 5000 + 200);
	assert_int_equal(u->max_ns, 5100);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(f->events[i].seq, 2 + i);
	/* A loss keeps its place among the numbers. */
	f->ring_limit = 3;
	softirq(f, 0, 100, 0);
	emit(f, 0, 8);
	f->ring_limit = RING_MAX;
	softirq(f, 0, 100, 0);
	emit(f, 0, 1);
	assert_int_equal(drain(f), 2);
	assert_int_equal(u->count, 4);
	assert_int_equal(f->events[0].seq, 8);
	assert_int_equal(f->lost.seq, 9);
	assert_int_equal(f->lost.arg0, 7);
	assert_int_equal(f->events[2].seq, 16);
	/* Nothing to tell is no reason to hold anybody up, however much of it. */
	promise = batcher_promise(f->batcher);
	for (size_t i = 0; i < VS_BATCH_EVENTS_MAX; i++)
		softirq(f, 1, 10, 0);
	assert_in_range(drain(f), 0, 4); /* where the stage was full */
	assert_true(batcher_promise(f->batcher) > promise);
	batcher_summarise(f->batcher, 0);
	assert_int_equal(u->max_ns, 0); /* of another threshold */
	softirq(f, 1, 10, 0);
	assert_int_equal(drain(f), 2);
	batcher_totals_get(f->batcher, &totals);
	assert_int_equal(totals.emitted, totals.delivered + 7);
	assert_int_equal(totals.emitted,
			 f->cpus[0].attempted + f->cpus[1].attempted - 2 * u->count);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(stamps_are_tsc_in_time_order),
		TEST(times_are_distinct_without_noise),
		TEST(batches_name_the_cpu_of_their_samples),
		TEST(cpus_keep_the_order_of_their_stamps),
		TEST(a_pause_by_the_vmm_is_inside_the_bound),
		TEST(a_hole_in_seq_is_a_lost_marker_between_its_neighbours),
		TEST(a_loss_at_the_end_is_told_before_the_next_event_comes),
		TEST(a_loss_before_the_first_event_began_with_the_batcher),
		TEST(a_slot_being_written_holds_the_watermark_and_is_not_lost),
		TEST(an_interrupt_that_overtook_its_victim_is_put_right),
		TEST(long_runs_are_split_and_keep_every_promise),
		TEST(idle_cpus_make_no_frame_but_the_promise_moves),
		TEST(what_the_owner_drops_is_no_longer_delivered),
		TEST(stacks_pass_with_converted_time),
		TEST(names_and_switches_are_handed_over_as_well),
		TEST(batches_are_handed_over_in_place_of_frames),
		TEST(accounting_survives_any_order_of_events),
		TEST(accounting_survives_handlers_that_are_only_counted),
		TEST(short_handlers_are_counted_and_their_numbers_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
