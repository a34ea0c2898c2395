// SPDX-License-Identifier: GPL-2.0-only
/*
 * A drain delivers events CPU by CPU. The batcher stages them until the CPU has no more or the
 * stage is full, then flushes the stage: it orders the events by seq, turns gaps into LOST markers,
 * converts the stamps to TSC by the clock samples around them, orders the events by time, and
 * encodes them in slices. If the stage is full, its last events stay for the next flush, so that an
 * event that was delivered before the event that it interrupted is still put in order.
 *
 * A sequence number that is still missing after a CPU's last event is either lost or incomplete (a
 * vCPU can be descheduled inside a probe). The kernel's counters, read before the drain,
 * distinguish these: a lost event becomes a LOST marker without an end; for an incomplete one the
 * CPU keeps its old watermark.
 */
#include "bpf/capture/batcher.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/capture/clock_spans.h"
#include "bpf/capture/handler_summary.h"
#include "proto/array.h"
#include "proto/codec.h"
#include "proto/event_fields.h"

enum {
	STAGE_EVENTS = VS_BATCH_EVENTS_MAX,
	STAGE_TAIL = 64,   /* events that stay in the stage when it is full */
	STAGE_BLOCK = 256, /* events copied at a time: the next loop finds them in the cache */
	COOKED_EVENTS =
		2 * STAGE_EVENTS + 1, /* a LOST marker before every record, one at the end */
	FRAMES_MIN = 64,
	SAMPLES = 8, /* between two drains */
};

/* CLOCK_MONOTONIC is slewed by at most 0.05 %. The rate of the TSC is known much better than that.
 */
#define LAG_MARGIN 1.01

struct cpu_state {
	uint32_t next_seq; /* of the source; frames have this less the aggregated events */
	uint32_t aggregated;
	uint64_t newest_time; /* stream time of the newest record that was delivered */
	uint64_t watermark;
	uint64_t emitted, dropped_kernel, dropped_user;
	struct capture_cpu_stats before; /* the kernel's counters before this drain */
};

struct batcher {
	struct batcher_source source;
	uint64_t lag_ticks; /* the source's lag, rounded up */
	struct frame_writer *writer;
	struct batch_encoder *encoder;
	struct byte_buffer payload;
	struct cpu_state *cpus;
	struct handler_summary summary;
	void (*rewrite)(void *context, struct vs_event *events, size_t n); /* NULL: none */
	void *rewrite_context;

	uint64_t began_tsc;         /* of the first sample */
	struct clock_sample before; /* of this drain */
	struct clock_spans clock;
	/* The span of the last stamp that was converted, and its stamp with the greatest bound. */
	const struct capture_clock *span;
	struct clock_chord chord;
	uint64_t deepest_ns, deepest_stamp;
	uint64_t noise; /* low bits that no stamp of the chord needs, see noise_of() */
	/* The span of the events that are converted now in which the clock stood still. It is not
	 * used if there are two. */
	uint64_t chord_begin, chord_end;
	bool chords_many;
	/* The CPU whose TSC all samples around the events that are converted now were read. */
	bool names_tsc_cpu, tsc_cpu_set;
	uint32_t tsc_cpu;

	struct vs_event *stage; /* of one CPU, times in CLOCK_MONOTONIC */
	size_t n_staged;
	uint16_t stage_cpu;
	uint64_t stage_newest_ns;
	struct vs_event *cooked; /* the same in stream time, with LOST markers */
	bool disordered;         /* cooked is not in order of time */
	uint64_t n_lost;         /* events that the LOST markers in cooked stand for */
	bool has_lost;           /* there are such markers */

	struct batcher_frame *frames;
	size_t n_frames, frames_capacity;

	struct byte_buffer *out; /* of the drain in progress, like the following */
	const struct batcher_stack_sink *stacks;
	long n_delivered;
	int error;
};

static int source_capture_sample(void *context, struct clock_sample *out)
{
	return capture_clock_sample(context, out);
}

static size_t source_capture_samples(void *context, uint64_t after_tsc, struct clock_sample *out,
				     size_t max)
{
	return capture_clock_samples(context, after_tsc, out, max);
}

static long source_capture_drain(void *context, const struct capture_sink *sink)
{
	return capture_drain(context, sink);
}

static int source_capture_cpu_stats(void *context, size_t cpu, struct capture_cpu_stats *out)
{
	return capture_cpu_stats(context, cpu, out);
}

struct batcher *batcher_new(struct capture *c, struct frame_writer *w)
{
	const struct batcher_source source = {
		.drain = source_capture_drain,
		.cpu_stats = source_capture_cpu_stats,
		.sample = source_capture_sample,
		.samples = source_capture_samples,
		.n_cpus = capture_n_cpus(c),
		.lag_ns = capture_lag_ns(c),
		.context = c,
	};

	return batcher_new_from(&source, w);
}

struct batcher *batcher_new_from(const struct batcher_source *source, struct frame_writer *w)
{
	struct batcher *b = calloc(1, sizeof(*b));
	uint64_t hz;

	if (!b)
		return NULL;
	b->source = *source;
	b->writer = w;
	b->encoder = batch_encoder_new();
	b->cpus = calloc(source->n_cpus, sizeof(*b->cpus));
	b->stage = malloc(STAGE_EVENTS * sizeof(*b->stage));
	b->cooked = malloc(COOKED_EVENTS * sizeof(*b->cooked));
	b->frames = malloc(FRAMES_MIN * sizeof(*b->frames));
	b->frames_capacity = FRAMES_MIN;
	if (source->lag_ns && !clock_tsc_hz(&hz))
		b->lag_ticks = (uint64_t)((double)source->lag_ns * LAG_MARGIN * (double)hz / 1e9);
	if (!b->encoder || !b->cpus || !b->stage || !b->cooked || !b->frames ||
	    source->sample(source->context, &b->before) < 0) {
		batcher_free(b);
		return NULL;
	}
	b->began_tsc = b->before.tsc;
	clock_spans_init(&b->clock, &b->before);
	return b;
}

void batcher_free(struct batcher *b)
{
	if (!b)
		return;
	batch_encoder_free(b->encoder);
	byte_buffer_fini(&b->payload);
	free(b->cpus);
	free(b->stage);
	free(b->cooked);
	free(b->frames);
	free(b);
}

/* Takes a sample, and adds those that other functions took since the last one. Returns 0 or -errno.
 */
static int clock_sample_next(struct batcher *b, struct clock_sample *out)
{
	const struct clock_sample *newest = &b->clock.clock.after;
	struct clock_sample since[SAMPLES];
	int err = b->source.sample(b->source.context, out);
	size_t n = 0;

	if (err < 0)
		return err;
	if (b->source.samples)
		n = b->source.samples(b->source.context, newest->tsc, since, SAMPLES);
	for (size_t i = 0; i < n; i++)
		clock_spans_push(&b->clock, &since[i]);
	if (out->tsc != b->before.tsc && out->tsc != newest->tsc)
		clock_spans_push(&b->clock, out);
	return 0;
}

/* Takes a sample if `monotonic_ns` is later than the newest one. */
static void clock_reach(struct batcher *b, uint64_t monotonic_ns)
{
	struct clock_sample sample;
	int err;

	if (monotonic_ns <= b->clock.clock.after.monotonic_ns)
		return;
	err = b->source.sample(b->source.context, &sample);
	if (err < 0) {
		b->error = err;
		return;
	}
	clock_spans_extend(&b->clock, &sample);
}

static uint64_t stream_time(const struct batcher *b, uint64_t monotonic_ns, uint64_t *err_ticks)
{
	return capture_clock_to_tsc(clock_spans_at(&b->clock, monotonic_ns), monotonic_ns,
				    err_ticks);
}

/* Records between which samples stamps were interpolated. A reader that knows when the VM was
 * paused can then decide on which side of the pause each stamp lies. */
static void chord_note(struct batcher *b, const struct capture_clock *span)
{
	if (span->jump_ticks <= 0)
		return;
	b->chords_many |= b->chord_begin &&
			  (b->chord_begin != span->before.tsc || b->chord_end != span->after.tsc);
	b->chord_begin = span->before.tsc;
	b->chord_end = span->after.tsc;
}

/* Notes on which CPU the samples around stamps were read. */
static void tsc_cpu_note(struct batcher *b, const struct capture_clock *span)
{
	const uint32_t cpu = span->before.tsc_cpu == span->after.tsc_cpu ? span->after.tsc_cpu : 0;

	b->tsc_cpu = b->tsc_cpu_set && b->tsc_cpu != cpu ? 0 : cpu;
	b->tsc_cpu_set = true;
}

static void time_err_raise(uint64_t *time_err, uint64_t err)
{
	if (err > *time_err)
		*time_err = err;
}

/* Adds the bound of the stamps that the chord converted. */
static void span_leave(struct batcher *b, uint64_t *time_err)
{
	uint64_t err;

	if (b->deepest_stamp) {
		capture_clock_to_tsc(b->span, b->deepest_stamp, &err);
		time_err_raise(time_err, err + b->noise);
	}
	b->span = NULL;
	b->chord = (struct clock_chord){0};
	b->deepest_ns = b->deepest_stamp = 0;
}

/* A counter of more than 2 ticks per ns has several values for one stamp. The time of an event is
 * the one whose low bits are 0: such times compress better, and their order is still that of the
 * stamps. */
static uint64_t noise_of(const struct clock_chord *chord)
{
	uint64_t noise = 0;

	while (chord->ratio >> CLOCK_CHORD_FRACTION >= 2 * (noise + 1))
		noise = 2 * noise + 1;
	return noise;
}

static void span_enter(struct batcher *b, const struct capture_clock *span, uint64_t *time_err)
{
	if (span == b->span)
		return;
	span_leave(b, time_err);
	b->span = span;
	clock_chord_init(&b->chord, span);
	/* Stacks have the time of their event. */
	b->noise = b->stacks ? 0 : noise_of(&b->chord);
	chord_note(b, span);
	if (b->names_tsc_cpu)
		tsc_cpu_note(b, span);
}

/* Records arrive almost ordered, so that insertion sort needs one comparison for most of them. */
static void events_sort_by_seq(struct vs_event *events, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct vs_event moved;
		size_t at = i;

		if ((int32_t)(events[i].seq - events[i - 1].seq) >= 0)
			continue;
		moved = events[i];
		while (at > 0 && (int32_t)(moved.seq - events[at - 1].seq) < 0) {
			events[at] = events[at - 1];
			at--;
		}
		events[at] = moved;
	}
}

static void events_sort_by_time(struct vs_event *events, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct vs_event moved;
		size_t at = i;

		if (events[i].time >= events[i - 1].time)
			continue;
		moved = events[i];
		while (at > 0 && moved.time < events[at - 1].time) {
			events[at] = events[at - 1];
			at--;
		}
		events[at] = moved;
	}
}

static int frames_add(struct batcher *b, const struct batcher_frame *frame)
{
	if (ARRAY_RESERVE(&b->frames, b->n_frames, &b->frames_capacity, FRAMES_MIN))
		return -ENOMEM;
	b->frames[b->n_frames++] = *frame;
	return 0;
}

static int slice_write(struct batcher *b, const struct batch *batch)
{
	int err;

	if (b->stacks && b->stacks->batch)
		return b->stacks->batch(b->stacks->context, batch);
	b->payload.len = 0;
	err = batch_encode(b->encoder, batch, &b->payload);
	return err ? err
		   : frame_write_parted(b->writer, FRAME_BATCH, b->payload.data, b->payload.len,
					batch_encoder_noise_end(b->encoder), b->out);
}

/* Makes a frame of `n` converted events, or frames of their halves if they are too large for one.
 * The CPU's totals stay exact in any case. */
static void slice_encode(struct batcher *b, uint16_t cpu, struct vs_event *events, size_t n,
			 uint64_t time_err, uint64_t watermark)
{
	struct cpu_state *state = &b->cpus[cpu];
	struct batcher_frame frame = {.offset = b->out->len, .cpu = cpu};
	struct batch batch = {
		.cpu = cpu,
		.time_err = time_err,
		.watermark = watermark,
		.emitted = state->emitted,
		.dropped_kernel = state->dropped_kernel,
		.dropped_user = state->dropped_user,
		.tsc_cpu = b->tsc_cpu,
		.chord_begin = b->chords_many ? 0 : b->chord_begin,
		.chord_end = b->chords_many ? 0 : b->chord_end,
		.n_events = n,
		.events = events,
	};
	int err;

	frame.events = (uint32_t)n;
	for (size_t i = 0; i < n && b->has_lost; i++) {
		if (events[i].type != VS_EVENT_LOST)
			continue;
		batch.emitted += ev_lost_count(&events[i]);
		batch.dropped_kernel += ev_lost_count(&events[i]);
		frame.events--;
	}
	batch.emitted += frame.events;

	err = slice_write(b, &batch);
	if (err == -E2BIG && n > 1) {
		slice_encode(b, cpu, events, n / 2, time_err, events[n / 2].time);
		slice_encode(b, cpu, events + n / 2, n - n / 2, time_err, watermark);
		return;
	}
	if (!err && b->out->len > frame.offset) {
		frame.len = b->out->len - frame.offset;
		err = frames_add(b, &frame);
		if (err)
			b->out->len = frame.offset;
	}
	state->emitted = batch.emitted;
	state->dropped_kernel = batch.dropped_kernel;
	if (err) {
		state->dropped_user += frame.events;
		b->error = err;
	} else {
		b->n_delivered += frame.events;
	}
}

static struct vs_event event_lost(uint32_t seq, uint64_t count, uint64_t begin, uint64_t end)
{
	struct vs_event lost = {.time = begin, .seq = seq, .type = VS_EVENT_LOST};

	ev_set_lost_count(&lost, count);
	ev_set_lost_end(&lost, end);
	return lost;
}

static uint64_t promised(const struct cpu_state *state)
{
	return state->newest_time > state->watermark ? state->newest_time : state->watermark;
}

/* Converts a stamp to stream time. A time slightly before the promised time, by less than its own
 * error, becomes the promised time: the clocks may have been set back. */
static uint64_t stamp_convert(const struct capture_clock *span, const struct cpu_state *state,
			      uint64_t mono_ns, uint64_t *err_ticks)
{
	uint64_t floor = promised(state);
	uint64_t time = capture_clock_to_tsc(span, mono_ns, err_ticks);

	return time < floor && floor - time <= *err_ticks ? floor : time;
}

/* The same for the stamp of an event. Raises *time_err to its bound, at once or after the last
 * stamp of its span. */
static uint64_t event_time(struct batcher *b, const struct cpu_state *state, uint64_t mono_ns,
			   uint64_t *time_err)
{
	uint64_t time, err;

	if (!clock_chord_has(&b->chord, mono_ns))
		span_enter(b, clock_spans_at(&b->clock, mono_ns), time_err);
	if (clock_chord_has(&b->chord, mono_ns)) {
		const uint64_t depth_ns = clock_chord_depth(&b->chord, mono_ns);

		if (depth_ns >= b->deepest_ns) {
			b->deepest_ns = depth_ns;
			b->deepest_stamp = mono_ns;
		}
		time = clock_chord_tsc(&b->chord, mono_ns) & ~b->noise;
		if (time >= promised(state))
			return time;
	}
	time = stamp_convert(b->span, state, mono_ns, &err);
	time_err_raise(time_err, err);
	return time;
}

/* Removes handlers that are only counted. Numbers of events that were counted as lost stay. */
static void stage_summarise(struct batcher *b, size_t n)
{
	const uint32_t next_seq = b->cpus[b->stage_cpu].next_seq;
	size_t first = 0;

	while (first < n && (int32_t)(b->stage[first].seq - next_seq) < 0)
		first++;
	handler_summary_mark(&b->summary, b->stage + first, n - first);
}

static void cooked_lost_add(struct batcher *b, size_t *n_cooked, const struct vs_event *lost)
{
	b->cooked[*n_cooked] = *lost;
	b->cooked[(*n_cooked)++].cpu = b->stage_cpu;
	b->n_lost += ev_lost_count(lost);
	b->has_lost = true;
}

/* Fills b->cooked from the first `n` staged records. Returns the number of its events. */
static size_t stage_cook(struct batcher *b, size_t n, uint64_t *time_err)
{
	struct cpu_state *state = &b->cpus[b->stage_cpu];
	uint64_t previous = promised(state), err;
	size_t n_cooked = 0;

	for (size_t i = 0; i < n; i++) {
		const struct vs_event *staged = &b->stage[i];
		int32_t jump = (int32_t)(staged->seq - state->next_seq);
		uint64_t time = event_time(b, state, staged->time, time_err);
		struct vs_event *event;

		if (jump > 0) {
			struct vs_event lost;

			if (previous > time || previous == 0) {
				b->disordered = true;
				previous = time;
			}
			lost = event_lost(state->next_seq - state->aggregated, (uint64_t)jump,
					  previous, time);
			cooked_lost_add(b, &n_cooked, &lost);
		}
		/* Changed in place, by stores alone: it is not read again before the next pass. */
		event = &b->cooked[n_cooked];
		*event = *staged;
		event->cpu = b->stage_cpu;
		if (staged->type == VS_EVENT_LOST) {
			/* The source knows when better than the gap in this stream shows. */
			time = time > previous ? time : previous;
			ev_set_lost_end(
				event, stamp_convert(clock_spans_at(&b->clock, ev_lost_end(staged)),
						     state, ev_lost_end(staged), &err));
			state->next_seq = staged->seq + (uint32_t)ev_lost_count(staged);
			b->n_lost += ev_lost_count(staged);
			b->has_lost = true;
		} else if (jump >= 0) {
			state->next_seq = staged->seq + 1;
		} else if (state->dropped_kernel) {
			/* Counted as lost in an earlier flush, and here it is. */
			state->dropped_kernel--;
			state->emitted--;
		}
		b->disordered |= time < previous;
		event->time = previous = time;
		if (staged->type == VS_EVENT_NONE) {
			state->aggregated++;
			continue;
		}
		event->seq = staged->seq - state->aggregated;
		if (b->stacks && b->stacks->task &&
		    (staged->type == VS_EVENT_SCHED_SWITCH || staged->type == VS_EVENT_TASK_NAME))
			b->stacks->task(b->stacks->context, event, staged->time);
		n_cooked++;
	}
	span_leave(b, time_err);
	return n_cooked;
}

/* Appends a LOST marker for the events that this CPU attempted before the drain and that the kernel
 * dropped. Returns false while a record is still being written. */
static bool missing_settle(struct batcher *b, uint16_t cpu, size_t *n_cooked)
{
	struct cpu_state *state = &b->cpus[cpu];
	int32_t missing = (int32_t)((uint32_t)state->before.emitted - state->next_seq);
	uint64_t explained = state->dropped_kernel + b->n_lost;
	uint64_t begin = state->watermark;
	struct vs_event lost;

	if (missing <= 0)
		return true;
	if (state->before.dropped < explained + (uint64_t)missing)
		return false;
	if (*n_cooked)
		begin = b->cooked[*n_cooked - 1].time;
	else if (state->newest_time > begin)
		begin = state->newest_time;
	if (!begin) /* no event of this CPU has come yet */
		begin = b->began_tsc;
	lost = event_lost(state->next_seq - state->aggregated, (uint64_t)missing, begin, 0);
	cooked_lost_add(b, n_cooked, &lost);
	state->next_seq += (uint32_t)missing;
	return true;
}

static uint64_t ticks_less(uint64_t ticks, uint64_t err)
{
	return ticks > err ? ticks - err : 0;
}

/* Later records cannot be older than those that stay in the stage. */
static uint64_t stage_oldest(struct batcher *b, size_t from)
{
	uint64_t oldest = UINT64_MAX;

	for (size_t i = from; i < b->n_staged; i++) {
		uint64_t err, time = stream_time(b, b->stage[i].time, &err);

		time = ticks_less(time, err);
		if (time < oldest)
			oldest = time;
	}
	return oldest;
}

/* turn_ends: the source has no more events of this CPU in this drain. */
static void stage_flush(struct batcher *b, bool turn_ends)
{
	uint16_t cpu = b->stage_cpu;
	struct cpu_state *state = &b->cpus[cpu];
	size_t n = turn_ends ? b->n_staged : b->n_staged - STAGE_TAIL;
	uint64_t watermark = state->watermark, time_err = 0;
	size_t n_cooked = 0;

	b->chord_begin = b->chord_end = 0;
	b->chords_many = b->tsc_cpu_set = false;
	b->tsc_cpu = 0;
	b->disordered = false;
	b->n_lost = 0;
	b->has_lost = false;
	if (b->n_staged) {
		clock_reach(b, b->stage_newest_ns);
		events_sort_by_seq(b->stage, b->n_staged);
		stage_summarise(b, n);
		n_cooked = stage_cook(b, n, &time_err);
		if (b->disordered)
			events_sort_by_time(b->cooked, n_cooked);
	}
	if (!turn_ends) {
		watermark = stage_oldest(b, n);
		if (n_cooked && b->cooked[n_cooked - 1].time < watermark)
			watermark = b->cooked[n_cooked - 1].time;
	} else if (missing_settle(b, cpu, &n_cooked)) {
		watermark = ticks_less(b->before.tsc, b->before.tsc_width + 1 + b->lag_ticks);
	}
	if (watermark < state->watermark)
		watermark = state->watermark;

	for (size_t at = 0; at < n_cooked;) {
		size_t rest = n_cooked - at;
		size_t slice = rest < VS_BATCH_EVENTS_MAX ? rest : VS_BATCH_EVENTS_MAX;
		bool last = slice == rest;

		slice_encode(b, cpu, b->cooked + at, slice, time_err,
			     last ? watermark : b->cooked[at + slice].time);
		at += slice;
	}
	if (n_cooked && b->cooked[n_cooked - 1].time > state->newest_time)
		state->newest_time = b->cooked[n_cooked - 1].time;
	state->watermark = watermark;
	b->n_staged -= n;
	memmove(b->stage, b->stage + n, b->n_staged * sizeof(*b->stage));
}

static void batcher_on_events(void *context, uint16_t cpu, const struct vs_event *events, size_t n)
{
	struct batcher *b = context;

	if (cpu >= b->source.n_cpus) {
		b->error = -ERANGE;
		return;
	}
	if (b->n_staged && b->stage_cpu != cpu)
		stage_flush(b, true);
	if (!b->n_staged)
		b->stage_newest_ns = 0;
	b->stage_cpu = cpu;
	while (n) {
		size_t room = STAGE_EVENTS - b->n_staged;
		size_t take = n < room ? n : room;

		if (take > STAGE_BLOCK)
			take = STAGE_BLOCK;
		memcpy(b->stage + b->n_staged, events, take * sizeof(*events));
		if (b->rewrite)
			b->rewrite(b->rewrite_context, b->stage + b->n_staged, take);
		for (size_t i = 0; i < take; i++)
			if (events[i].time > b->stage_newest_ns)
				b->stage_newest_ns = events[i].time;
		b->n_staged += take;
		events += take;
		n -= take;
		if (b->n_staged == STAGE_EVENTS)
			stage_flush(b, false);
	}
}

static void batcher_on_stack(void *context, const struct capture_stack *stack)
{
	struct batcher *b = context;
	struct capture_stack converted = *stack;
	uint64_t err;

	if (!b->stacks)
		return;
	clock_reach(b, stack->time);
	converted.time = stream_time(b, stack->time, &err);
	b->stacks->stack(b->stacks->context, &converted, err);
}

long batcher_drain(struct batcher *b, struct byte_buffer *out,
		   const struct batcher_stack_sink *stacks)
{
	const struct capture_sink sink = {
		.events = batcher_on_events,
		.stack = stacks ? batcher_on_stack : NULL,
		.context = b,
	};
	struct clock_sample sample;
	long n;
	int err;

	b->out = out;
	b->stacks = stacks;
	b->n_frames = 0;
	b->n_delivered = 0;
	b->error = 0;

	/* Reads the time, then the counters, then the records. So events that the counters do not
	 * include are younger than the time. */
	err = clock_sample_next(b, &sample);
	if (err < 0)
		return err;
	b->before = sample;
	for (size_t cpu = 0; cpu < b->source.n_cpus; cpu++) {
		err = b->source.cpu_stats(b->source.context, cpu, &b->cpus[cpu].before);
		if (err < 0)
			return err;
	}

	n = b->source.drain(b->source.context, &sink);
	if (n < 0)
		b->error = (int)n;
	if (b->n_staged)
		stage_flush(b, true);
	/* All CPUs, also those that had a turn before: a second one is cheap. */
	for (size_t cpu = 0; n >= 0 && cpu < b->source.n_cpus; cpu++) {
		b->stage_cpu = (uint16_t)cpu;
		stage_flush(b, true);
	}
	b->out = NULL;
	b->stacks = NULL;
	return b->error ? b->error : b->n_delivered;
}

int batcher_tick(struct batcher *b)
{
	struct clock_sample sample;

	return clock_sample_next(b, &sample);
}

uint64_t batcher_pending(const struct batcher *b)
{
	uint64_t most = 0;

	for (size_t cpu = 0; cpu < b->source.n_cpus; cpu++) {
		struct capture_cpu_stats now;
		int32_t pending;

		if (b->source.cpu_stats(b->source.context, cpu, &now) < 0)
			continue;
		pending = (int32_t)((uint32_t)now.emitted - b->cpus[cpu].next_seq);
		if (pending > 0 && (uint64_t)pending > most)
			most = (uint64_t)pending;
	}
	return most;
}

const struct batcher_frame *batcher_frames(const struct batcher *b, size_t *n)
{
	*n = b->n_frames;
	return b->frames;
}

void batcher_drop(struct batcher *b, uint16_t cpu, uint64_t events)
{
	if (cpu < b->source.n_cpus)
		b->cpus[cpu].dropped_user += events;
}

uint64_t batcher_promise(const struct batcher *b)
{
	uint64_t promise = UINT64_MAX;

	for (size_t cpu = 0; cpu < b->source.n_cpus; cpu++)
		if (b->cpus[cpu].watermark < promise)
			promise = b->cpus[cpu].watermark;
	return promise;
}

const struct clock_sample *batcher_sample(const struct batcher *b)
{
	return &b->before;
}

void batcher_name_tsc_cpu(struct batcher *b, bool names)
{
	b->names_tsc_cpu = names;
}

void batcher_summarise(struct batcher *b, uint64_t handler_over_ns)
{
	if (b->summary.over_ns == handler_over_ns)
		return;
	b->summary.over_ns = handler_over_ns;
	for (size_t i = 0; i < EVENT_CLASSES; i++)
		b->summary.aggregated[i].max_ns = 0;
}

const struct message_aggregated *batcher_aggregated(const struct batcher *b)
{
	return b->summary.aggregated;
}

void batcher_rewrite(struct batcher *b,
		     void (*rewrite)(void *context, struct vs_event *events, size_t n),
		     void *context)
{
	b->rewrite = rewrite;
	b->rewrite_context = context;
}

void batcher_totals_get(const struct batcher *b, struct batcher_totals *out)
{
	*out = (struct batcher_totals){0};
	for (size_t cpu = 0; cpu < b->source.n_cpus; cpu++) {
		out->emitted += b->cpus[cpu].emitted;
		out->dropped_kernel += b->cpus[cpu].dropped_kernel;
		out->dropped_user += b->cpus[cpu].dropped_user;
	}
	out->delivered = out->emitted - out->dropped_kernel - out->dropped_user;
}
