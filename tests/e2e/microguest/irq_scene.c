// SPDX-License-Identifier: GPL-2.0-only
#include "irq_scene.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "clock/sample.h"
#include "proto/codec.h"
#include "proto/recording.h"

enum {
	SEED = 1,
	TURN_MS = 20,
	PLAY_MS = 240000,
	TIMER_EARLY_NS = 5000, /* KVM's own limit on that */
	HOST_EVENTS_MAX = 1 << 20,
};

const struct irq_guest_entry *irq_scene_run(const struct irq_scene *s, const struct irq_raised *r)
{
	return &irq_vmm_cpu(&s->vmm, r->vcpu)->log[r->log];
}

uint64_t irq_scene_host_tsc(const struct irq_scene *s, uint32_t vcpu, uint64_t guest)
{
	return guest - s->vmm.truth->tsc_offset[vcpu];
}

static int by_time(const void *a, const void *b)
{
	const struct vs_event *x = &((const struct irq_host_event *)a)->event;
	const struct vs_event *y = &((const struct irq_host_event *)b)->event;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return (int32_t)(x->seq - y->seq);
}

static int by_run(const void *a, const void *b)
{
	const struct irq_raised *x = a, *y = b;

	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	if (x->log != y->log)
		return x->log < y->log ? -1 : 1;
	return x->merged - y->merged;
}

static void batch_take(struct irq_scene *s, struct batch_decoder *decoder, const uint8_t *payload,
		       size_t len)
{
	struct batch b;

	assert_int_equal(batch_decode(decoder, payload, len, &b), 0);
	for (size_t i = 0; i < b.n_events; i++) {
		assert_true(s->n_host < HOST_EVENTS_MAX);
		assert_int_not_equal(b.events[i].type, VS_EVENT_LOST);
		s->host[s->n_host++] = (struct irq_host_event){b.events[i], b.time_err};
	}
}

static void host_read(struct irq_scene *s)
{
	struct batch_decoder *decoder = batch_decoder_new();
	struct frame_unpacker *unpacker = frame_unpacker_new();
	struct recording_reader *reader;
	struct recording_entry entry;
	const uint8_t *payload;
	size_t len;

	s->host = calloc(HOST_EVENTS_MAX, sizeof(*s->host));
	assert_true(decoder && unpacker && s->host);
	assert_int_equal(recording_reader_open(s->path, &reader), 0);
	while (recording_reader_next(reader, &entry) > 0) {
		if (entry.source != VS_SOURCE_HOST || entry.frame.header.kind != FRAME_BATCH)
			continue;
		assert_int_equal(frame_unpack(unpacker, &entry.frame, &payload, &len), 0);
		batch_take(s, decoder, payload, len);
	}
	assert_true(recording_reader_info(reader)->closed);
	recording_reader_close(reader);
	frame_unpacker_free(unpacker);
	batch_decoder_free(decoder);
	qsort(s->host, s->n_host, sizeof(*s->host), by_time);
}

/* What the guest raised itself: not before its command began to run; a timer not before it was due,
 * but that KVM may let it expire early, so that entering the guest takes the rest. */
static uint64_t raised_inside(const struct irq_scene *s, const struct irq_raised *r, uint64_t early)
{
	const struct irq_raised *command = &s->vmm.truth->raised[r->sender];
	const struct irq_guest_entry *run = irq_scene_run(s, command);

	return r->kind == IRQ_KIND_TIMER
		       ? irq_scene_host_tsc(s, command->vcpu, run->deadline) - early
		       : irq_scene_host_tsc(s, command->vcpu, run->entry);
}

static void truth_take(struct irq_scene *s)
{
	const struct irq_truth *t = s->vmm.truth;
	uint64_t early;

	assert_int_equal(clock_tsc_hz(&early), 0);
	early = early * TIMER_EARLY_NS / 1000000000;
	s->n_raised = t->n_raised;
	s->raised = malloc(s->n_raised * sizeof(*s->raised));
	assert_non_null(s->raised);
	memcpy(s->raised, t->raised, s->n_raised * sizeof(*s->raised));
	for (size_t i = 0; i < s->n_raised; i++) {
		if (s->raised[i].kind == IRQ_KIND_IPI || s->raised[i].kind == IRQ_KIND_TIMER)
			s->raised[i].before = raised_inside(s, &s->raised[i], early);
	}
	qsort(s->raised, s->n_raised, sizeof(*s->raised), by_run);
}

static void record(struct irq_scene *s, uint32_t count)
{
	struct irq_recording *recording;
	char why[256] = "";
	int error;

	error = irq_vmm_start(&s->vmm);
	if (error)
		fail_msg("%s (%s)", s->vmm.truth ? s->vmm.truth->error : "", strerror(-error));
	if (irq_recording_open(s->path, &s->vmm, &recording, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(irq_vmm_play(&s->vmm, count, SEED), 0);
	for (int ms = 0; (error = irq_vmm_wait(&s->vmm, TURN_MS)) == -ETIME; ms += TURN_MS) {
		assert_true(ms < PLAY_MS);
		assert_int_equal(irq_recording_turn(recording), 0);
	}
	if (error)
		fail_msg("%s (%s)", s->vmm.truth->error, strerror(-error));
	assert_int_equal(irq_recording_close(recording, &s->vmm, &s->stats), 0);
}

void irq_scene_make(struct irq_scene *s, const char *path, uint32_t count)
{
	*s = (struct irq_scene){.path = path};
	record(s, count);
	host_read(s);
	truth_take(s);
}

void irq_scene_free(struct irq_scene *s)
{
	irq_vmm_stop(&s->vmm);
	free(s->host);
	free(s->raised);
}
