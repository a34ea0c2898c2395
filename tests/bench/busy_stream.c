/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/bench/busy_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/recording.h"
#include "tests/bench/busy_scene.h"

struct making {
	struct busy_stream *stream;
	struct frame_unpacker *unpacker;
	struct batch_decoder *decoder;
	int err;
};

static void *copy(struct making *m, const void *bytes, size_t len)
{
	void *mine = malloc(len + 1);

	if (mine)
		memcpy(mine, bytes, len);
	else
		m->err = -ENOMEM;
	return mine;
}

static void frame_keep(void *context, uint32_t source, uint64_t tsc, const struct frame_view *frame)
{
	struct making *m = context;
	struct busy_stream *s = m->stream;
	struct busy_arrival *a = s->arrivals;
	const uint8_t *payload;
	size_t len;

	if (!(s->n & (s->n + 1)) || !a)
		a = reallocarray(a, 2 * (s->n + 1), sizeof(*a));
	if (!a || m->err) {
		m->err = -ENOMEM;
		return;
	}
	s->arrivals = a;
	a = &s->arrivals[s->n++];
	*a = (struct busy_arrival){.source = source, .tsc = tsc, .frame = *frame};
	a->frame.bytes = copy(m, frame->bytes, frame->len);
	if (frame->header.kind != FRAME_BATCH)
		return;
	m->err = frame_unpack(m->unpacker, frame, &payload, &len);
	if (!m->err)
		m->err = batch_decode(m->decoder, payload, len, &a->batch);
	if (m->err) {
		a->batch.events = NULL;
		return;
	}
	a->batch.events = copy(m, a->batch.events, a->batch.n_events * sizeof(*a->batch.events));
	a->is_batch = true;
	s->events += a->batch.n_events;
}

int busy_stream_make(struct busy_stream *out, size_t n)
{
	struct making m = {
		.stream = out, .unpacker = frame_unpacker_new(), .decoder = batch_decoder_new()};
	struct timeline_event *events = busy_scene_new(n);
	const struct synth_options options = {
		.entry = frame_keep, .context = &m, .guest_tsc_offset = 123456789};
	struct synth *synth = NULL;

	*out = (struct busy_stream){0};
	if (events && m.unpacker && m.decoder)
		synth = synth_new(&options);
	if (!synth)
		m.err = -ENOMEM;
	for (size_t i = 0; i < n && synth; i++) {
		const struct timeline_event *e = &events[i];

		synth_at(synth, e->t.ns);
		if (e->source == VS_SOURCE_HOST)
			synth_host_event(synth, e->event.cpu, e->event);
		else
			synth_guest_event(synth, e->event.cpu, e->event);
	}
	if (synth)
		synth_free(synth);
	free(events);
	frame_unpacker_free(m.unpacker);
	batch_decoder_free(m.decoder);
	return m.err;
}

void busy_stream_fini(struct busy_stream *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free((void *)s->arrivals[i].frame.bytes);
		free(s->arrivals[i].batch.events);
	}
	free(s->arrivals);
}

struct frame_item busy_arrival_item(const struct busy_arrival *a, struct frame_maker *maker)
{
	struct frame_item item = frame_item_of(&a->frame);

	if (a->is_batch) {
		item.batch = &a->batch;
		item.maker = maker;
		item.frame.len = 0;
	}
	return item;
}
