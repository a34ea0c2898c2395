/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the tests of the pipeline. Keeps the frames of a scene that synth.c writes, plays them
 * into a pipeline with a model, and records the calls of the model's observer. */
#ifndef TESTS_PIPELINE_PLAY_H
#define TESTS_PIPELINE_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/engine/pipeline.h"
#include "tests/unit/synth.h"

#define MS 1000000ll
enum { VCPU0 = SYNTH_QEMU_PID + 1, HOG = 4242, TASK = 77, OTHER = 88 };

/* All frames of a scene. A test may play them several times. */
struct tape {
	struct entry {
		uint32_t source;
		uint64_t arrival_tsc;
		struct frame_view frame;
		uint8_t *bytes;
	} * entries;
	size_t n;
};

static inline void tape_add(void *context, uint32_t source, uint64_t arrival_tsc,
			    const struct frame_view *frame)
{
	struct tape *tape = context;
	struct entry *e;

	tape->entries = realloc(tape->entries, (tape->n + 1) * sizeof(*tape->entries));
	assert_non_null(tape->entries);
	e = &tape->entries[tape->n++];
	*e = (struct entry){source, arrival_tsc, *frame, malloc(frame->len)};
	assert_non_null(e->bytes);
	memcpy(e->bytes, frame->bytes, frame->len);
	e->frame.bytes = e->bytes;
}

static inline void tape_fini(struct tape *tape)
{
	for (size_t i = 0; i < tape->n; i++)
		free(tape->entries[i].bytes);
	free(tape->entries);
}

struct seen {
	struct guest_instant instants[20000];
	size_t n_instants;
	struct vcpu_span spans[20000];
	size_t n_spans;
	unsigned notes;
	int64_t last_word_ns;
	unsigned steals;
	struct guest_steal steal; /* the last */
};

static inline void see_instant(void *context, const struct guest_instant *i)
{
	struct seen *seen = context;

	if (i->type == VS_EVENT_LOST && !i->event.arg0) {
		seen->last_word_ns = i->t.ns;
		return; /* the end of what the guest said */
	}
	assert_true(seen->n_instants < 20000);
	if (seen->n_instants)
		assert_true(seen->instants[seen->n_instants - 1].t.ns <= i->t.ns);
	seen->instants[seen->n_instants++] = *i;
}

static inline void see_span(void *context, const struct vcpu_span *s)
{
	struct seen *seen = context;

	assert_true(seen->n_spans < 20000);
	seen->spans[seen->n_spans++] = *s;
}

static inline void see_steal(void *context, const struct guest_steal *steal)
{
	struct seen *seen = context;

	seen->steal = *steal;
	seen->steals++;
}

static inline void see_note(void *context, const struct message_note *note)
{
	(void)note;
	((struct seen *)context)->notes++;
}

struct play {
	struct tape tape;
	struct seen *seen, *early;
	struct model *model, *early_model;
	struct pipeline *pipeline;
};

static inline struct model *model_watched(struct seen *seen)
{
	struct model *m = model_new();
	const struct model_observer observer = {.guest_instant = see_instant,
						.vcpu_span = see_span,
						.guest_steal = see_steal,
						.context = seen};

	assert_non_null(m);
	assert_int_equal(model_observe(m, &observer), 0);
	return m;
}

static inline void play_start(struct play *p, bool live)
{
	struct pipeline_options options = {.live = live, .note = see_note};

	p->seen = calloc(1, sizeof(*p->seen));
	p->model = model_watched(p->seen);
	if (live) {
		p->early = calloc(1, sizeof(*p->early));
		p->early_model = model_watched(p->early);
	}
	options.model = p->model;
	options.early = p->early_model;
	options.context = p->seen;
	p->pipeline = pipeline_new(&options);
	assert_non_null(p->pipeline);
}

static inline void play_entry(struct play *p, const struct entry *e)
{
	assert_int_equal(pipeline_frame(p->pipeline, e->source, e->arrival_tsc, &e->frame), 0);
}

/* Plays all frames into a started pipeline, as when reading a recording. */
static inline void play_whole(struct play *p)
{
	for (size_t i = 0; i < p->tape.n; i++) {
		const struct entry *e = &p->tape.entries[i];

		assert_int_equal(pipeline_learn(p->pipeline, e->source, e->arrival_tsc, &e->frame),
				 0);
	}
	assert_int_equal(pipeline_learned(p->pipeline), 0);
	for (size_t i = 0; i < p->tape.n; i++)
		play_entry(p, &p->tape.entries[i]);
	assert_int_equal(pipeline_finish(p->pipeline), 0);
}

static inline void play_offline(struct play *p)
{
	play_start(p, false);
	play_whole(p);
}

static inline void play_end(struct play *p)
{
	pipeline_free(p->pipeline);
	model_free(p->model);
	model_free(p->early_model);
	free(p->seen);
	free(p->early);
	tape_fini(&p->tape);
}

static inline struct pipeline_source source_of(const struct play *p, uint32_t id)
{
	struct pipeline_source s;

	for (size_t i = 0; !pipeline_source_get(p->pipeline, i, &s); i++) {
		if (s.source == id)
			return s;
	}
	fail_msg("no source %u", id);
	return s;
}

static inline struct synth *scene_new(struct play *p, struct synth_options options)
{
	memset(p, 0, sizeof(*p));
	options.entry = tape_add;
	options.context = &p->tape;
	return synth_new(&options);
}

/* A guest switch every 7 ms on alternate CPUs, for a second. */
static inline void scene_switches(struct synth *s, int64_t begin, int64_t end)
{
	for (int64_t t = begin, i = 0; t < end; t += 7 * MS, i++) {
		synth_at(s, t);
		synth_guest_event(s, (uint16_t)(i % 2),
				  i & 2 ? synth_switch(TASK, 1, OTHER)
					: synth_switch(OTHER, 1, TASK));
	}
}

/* Checks that instant `i` is at its scripted time, within its stated error. */
static inline void assert_switches(const struct seen *seen, int64_t begin, int64_t end,
				   uint32_t err_limit)
{
	size_t i = 0;

	for (int64_t t = begin; t < end; t += 7 * MS, i++) {
		const struct guest_instant *at = &seen->instants[i];

		assert_true(i < seen->n_instants);
		assert_true(llabs(at->t.ns - synth_host_ns(t)) <= at->err_ns);
		assert_true(at->err_ns < err_limit);
	}
	assert_int_equal(seen->n_instants, i);
}

static inline const struct vcpu_span *span_find(const struct seen *seen, enum vcpu_state state)
{
	for (size_t i = 0; i < seen->n_spans; i++) {
		if (seen->spans[i].state == state && seen->spans[i].tid == VCPU0)
			return &seen->spans[i];
	}
	return NULL;
}

/* The host side of a stall: a hog takes the vCPU's pCPU from 300 to 800 ms. */
static inline void scene_hog(struct synth *s)
{
	synth_at(s, 1 * MS);
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	synth_at(s, 300 * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_guest_silent(s, true);
	synth_at(s, 800 * MS);
	synth_host_event(s, 0, synth_switch(HOG, 1, VCPU0));
	synth_guest_silent(s, false);
	synth_at(s, 1200 * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, 1, 0));
	synth_at(s, 1300 * MS);
}

#endif
