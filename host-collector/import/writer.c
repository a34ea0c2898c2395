// SPDX-License-Identifier: GPL-2.0-only
/*
 * Batches are written in slices of 100 ms, the host's before the guest's, so that a reader that
 * merges both waits no longer than for a live recording. Intervals without any event are skipped.
 */
#include "host-collector/import/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/codec.h"
#include "proto/event_fields.h"
#include "proto/frame.h"
#include "proto/recording.h"

static const uint64_t slice_ns = 100000000, sample_margin_ns = 1000000000, hz = 1000000000;
static const uint32_t guest_vm = 1;

struct cpu_totals {
	uint32_t next_seq;
	uint64_t emitted, dropped;
};

/* One machine's half. */
struct half {
	const struct gather *from;
	uint32_t source;
	uint64_t err_ns;
	struct frame_writer *frames;
	size_t at; /* in from->events */
	struct cpu_totals cpus[GATHER_CPUS];
	uint64_t emitted, delivered, dropped;
};

struct writer {
	struct recording_writer *recording;
	struct batch_encoder *encoder;
	struct byte_buffer payload, frame;
	struct vs_event *events; /* of one slice */
	size_t capacity;
	struct half host, guest;
};

static int frame_put(struct writer *w, struct half *h, enum frame_kind kind, uint64_t arrival)
{
	int err;

	w->frame.len = 0;
	err = frame_write(h->frames, kind, w->payload.data, w->payload.len, &w->frame);
	w->payload.len = 0;
	return err ? err
		   : recording_writer_append(w->recording, h->source, arrival, w->frame.data,
					     w->frame.len);
}

static int hello_put(struct writer *w, struct half *h, uint64_t now)
{
	struct message_hello *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->protocol_min = VS_PROTOCOL_MIN;
	m->protocol_max = VS_PROTOCOL_MAX;
	m->role = h->source ? STREAM_ROLE_GUEST : STREAM_ROLE_HOST;
	m->clock = STREAM_CLOCK_HOST_TSC;
	m->clock_hz = hz;
	strcpy(m->program_version, "import");
	for (uint32_t cpu = 0; h->source && cpu < h->from->n_cpus; cpu++)
		m->cpus[m->n_cpus++] = (struct message_cpu){.cpu = cpu, .apic_id = cpu};
	err = message_hello_pack(m, &w->payload);
	free(m);
	return err ? err : frame_put(w, h, FRAME_HELLO, now);
}

static struct message_clock_sample sample_at(uint64_t now)
{
	/* No wall clock: nobody wrote it down. */
	return (struct message_clock_sample){.tsc = now, .monotonic_ns = now, .raw_ns = now};
}

/* Writes a clock sample. An import has one clock for both sides; samples far before and after the
 * recording make a reader compute this exactly. */
static int sample_put(struct writer *w, uint64_t at, uint64_t now)
{
	struct message_clock_sample m = sample_at(at);
	int err = message_clock_sample_pack(&m, &w->payload);

	return err ? err : frame_put(w, &w->host, FRAME_CLOCK_SAMPLE, now);
}

static int note_put(struct writer *w, const char *text, uint64_t now)
{
	struct message_note m = {.kind = NOTE_IMPORTED, .host_tsc = now};
	int err;

	strncpy(m.text, text, sizeof(m.text) - 1);
	err = message_note_pack(&m, &w->payload);
	return err ? err : frame_put(w, &w->host, FRAME_NOTE, now);
}

/* Describes the events for which vcpuscope has no type. */
static int others_put(struct writer *w, struct half *h, uint64_t now)
{
	const size_t n = other_events_count(h->from->others);
	struct message_user_events *m = calloc(1, sizeof(*m));
	int err = m ? 0 : -ENOMEM;

	for (uint32_t id = 1; id <= n && !err;) {
		for (m->n = 0; id <= n && m->n < VS_USER_EVENTS_MAX; id++)
			other_events_describe(h->from->others, id, &m->events[m->n++]);
		err = message_user_events_pack(m, &w->payload);
		if (!err)
			err = frame_put(w, h, FRAME_USER_EVENTS, now);
	}
	free(m);
	return err;
}

static int heartbeat_put(struct writer *w, struct half *h, uint64_t now)
{
	struct message_heartbeat m = {
		.time = now,
		.emitted = h->emitted,
		.delivered = h->delivered,
		.dropped_kernel = h->dropped,
		.sample = sample_at(now),
	};
	int err = message_heartbeat_pack(&m, &w->payload);

	return err ? err : frame_put(w, h, FRAME_HEARTBEAT, now + h->err_ns);
}

static int begin_put(struct writer *w, const struct import_plan *plan, uint64_t now)
{
	int err = note_put(w, plan->origin, now);

	if (!err)
		err = hello_put(w, &w->host, now);
	if (!err)
		err = sample_put(w, now > sample_margin_ns ? now - sample_margin_ns : 1, now);
	for (size_t i = 0; i < plan->vcpus->n && !err; i++) {
		err = message_vm_info_pack(&plan->vcpus->vms[i], &w->payload);
		if (!err)
			err = frame_put(w, &w->host, FRAME_VM_INFO, now);
	}
	if (!err)
		err = others_put(w, &w->host, now);
	if (!err && w->guest.from)
		err = hello_put(w, &w->guest, now);
	if (!err && w->guest.from)
		err = others_put(w, &w->guest, now);
	return err;
}

/* Numbers the events of one CPU as their capturer would have, and counts them. */
static void events_number(struct half *h, struct vs_event *events, size_t n)
{
	struct cpu_totals *c = &h->cpus[events[0].cpu];

	for (size_t i = 0; i < n; i++) {
		uint64_t weight = events[i].type == VS_EVENT_LOST ? ev_lost_count(&events[i]) : 1;

		events[i].seq = c->next_seq;
		c->next_seq += (uint32_t)weight;
		c->emitted += weight;
		h->emitted += weight;
		if (events[i].type == VS_EVENT_LOST) {
			c->dropped += weight;
			h->dropped += weight;
		} else {
			h->delivered++;
		}
	}
}

static int batch_put(struct writer *w, struct half *h, struct vs_event *events, size_t n,
		     uint64_t watermark)
{
	struct batch b = {
		.cpu = events[0].cpu,
		.time_err = h->err_ns,
		.watermark = watermark,
		.n_events = n,
		.events = events,
	};
	int err;

	events_number(h, events, n);
	b.emitted = h->cpus[b.cpu].emitted;
	b.dropped_kernel = h->cpus[b.cpu].dropped;
	err = batch_encode(w->encoder, &b, &w->payload);
	return err ? err : frame_put(w, h, FRAME_BATCH, watermark + h->err_ns);
}

static int cpu_order(const void *a, const void *b)
{
	const struct vs_event *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu > y->cpu ? 1 : -1;
	if (x->time != y->time)
		return x->time > y->time ? 1 : -1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

/* The events before `end`, CPU by CPU, and the promise that nothing older follows. */
static int slice_put(struct writer *w, struct half *h, uint64_t end)
{
	const struct gather *g = h->from;
	size_t n = 0, first = 0;
	int err = 0;

	while (h->at + n < g->n_events && g->events[h->at + n].e.time < end)
		n++;
	if (n > w->capacity) {
		struct vs_event *grown = realloc(w->events, n * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		w->events = grown;
		w->capacity = n;
	}
	for (size_t i = 0; i < n; i++)
		w->events[i] = g->events[h->at + i].e;
	h->at += n;
	if (n)
		qsort(w->events, n, sizeof(*w->events), cpu_order);
	while (first < n && !err) {
		size_t last = first + 1;

		while (last < n && last - first < VS_BATCH_EVENTS_MAX &&
		       w->events[last].cpu == w->events[first].cpu)
			last++;
		/* A full batch's CPU may go on in the next one. */
		err = batch_put(w, h, w->events + first, last - first, w->events[last - 1].time);
		first = last;
	}
	return err ? err : heartbeat_put(w, h, end);
}

/* The time of the next event of either half. false: none. */
static bool next_time(const struct writer *w, uint64_t *time)
{
	const struct half *const halves[] = {&w->host, &w->guest};
	bool any = false;

	for (size_t i = 0; i < 2; i++) {
		const struct half *h = halves[i];

		if (!h->from || h->at == h->from->n_events)
			continue;
		if (!any || h->from->events[h->at].e.time < *time)
			*time = h->from->events[h->at].e.time;
		any = true;
	}
	return any;
}

/* After the last event nothing is known any more. */
static uint64_t end_of_all(const struct writer *w)
{
	const struct half *const halves[] = {&w->host, &w->guest};
	uint64_t end = 0;

	for (size_t i = 0; i < 2; i++) {
		const struct gather *g = halves[i]->from;

		if (g && g->n_events && g->events[g->n_events - 1].e.time >= end)
			end = g->events[g->n_events - 1].e.time + 1;
	}
	return end;
}

static int all_put(struct writer *w, const struct import_plan *plan)
{
	const uint64_t last = end_of_all(w);
	uint64_t now = 1, end;
	int err;

	next_time(w, &now);
	/* A clock sample with the time 0 would count as unknown. */
	err = begin_put(w, plan, now ? now : 1);
	while (!err && next_time(w, &now)) {
		end = now - now % slice_ns + slice_ns;
		if (end > last)
			end = last;
		err = slice_put(w, &w->host, end);
		if (!err && w->guest.from)
			err = slice_put(w, &w->guest, end);
	}
	return err ? err : sample_put(w, last + sample_margin_ns, last);
}

static uint64_t session_id(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * hz + (uint64_t)now.tv_nsec;
}

static int half_init(struct half *h, const struct gather *from, uint32_t source, uint64_t err_ns)
{
	h->from = from;
	h->source = source;
	h->err_ns = from ? err_ns + from->unit : 0;
	h->frames = from ? frame_writer_new(session_id() + source) : NULL;
	return from && !h->frames ? -ENOMEM : 0;
}

int import_write(const struct import_plan *plan)
{
	struct writer *w = calloc(1, sizeof(*w));
	int err, close_err;

	if (!w)
		return -ENOMEM;
	w->encoder = batch_encoder_new();
	err = w->encoder ? half_init(&w->host, plan->host, VS_SOURCE_HOST, 0) : -ENOMEM;
	if (!err)
		err = half_init(&w->guest, plan->guest, guest_vm, plan->guest_err_ns);
	if (!err)
		err = recording_writer_open(plan->path, VS_RECORDING_IMPORTED, session_id(),
					    &w->recording);
	if (!err) {
		err = all_put(w, plan);
		close_err = recording_writer_close(w->recording, w->host.dropped);
		err = err ? err : close_err;
	}
	frame_writer_free(w->host.frames);
	frame_writer_free(w->guest.frames);
	batch_encoder_free(w->encoder);
	byte_buffer_fini(&w->payload);
	byte_buffer_fini(&w->frame);
	free(w->events);
	free(w);
	return err;
}
