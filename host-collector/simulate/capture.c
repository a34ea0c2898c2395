// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/array.h"
#include "proto/codec.h"

enum { RING_EVENTS = 32768, GUEST_BOOTED_S = 100 };

void sim_clock_step(struct sim_clock *c, int64_t ns)
{
	c->tsc0 += (uint64_t)((unsigned __int128)(uint64_t)ns * c->true_hz / 1000000000);
	c->monotonic0 += (uint64_t)ns;
	c->raw0 += (uint64_t)ns;
	c->realtime0 += (uint64_t)ns;
}

uint64_t sim_clock_tsc(const struct sim_clock *c, int64_t t)
{
	return c->tsc0 + (uint64_t)((unsigned __int128)(uint64_t)t * c->true_hz / 1000000000);
}

static uint64_t clock_monotonic(const struct sim_clock *c, int64_t t)
{
	return c->monotonic0 + (uint64_t)t +
	       (uint64_t)(int64_t)((__int128)t * c->monotonic_ppb / 1000000000);
}

void sim_clock_restart(struct sim_clock *c, int64_t t)
{
	c->tsc0 -= sim_clock_tsc(c, t);
	c->monotonic0 -= clock_monotonic(c, t);
	c->raw0 = (uint64_t)-t;
}

static int source_sample(void *context, struct clock_sample *out)
{
	struct sim_capture *c = context;
	int64_t now = c->o.engine->now;

	*out = (struct clock_sample){
		.tsc = sim_clock_tsc(&c->o.clock, now),
		.tsc_width = (uint64_t)engine_between(c->o.engine, 60, 400),
		.monotonic_ns = clock_monotonic(&c->o.clock, now),
		.raw_ns = c->o.clock.raw0 + (uint64_t)now,
		.realtime_ns = c->o.clock.realtime0 + (uint64_t)now,
	};
	return 0;
}

static int source_cpu_stats(void *context, size_t cpu, struct capture_cpu_stats *out)
{
	struct sim_capture *c = context;

	*out = (struct capture_cpu_stats){.emitted = c->rings[cpu].attempted,
					  .dropped = c->rings[cpu].dropped};
	return 0;
}

/* CPU by CPU, beginning with any. */
static long source_drain(void *context, const struct capture_sink *sink)
{
	struct sim_capture *c = context;
	uint32_t first = (uint32_t)engine_between(c->o.engine, 0, c->o.n_cpus - 1);
	long n = 0;

	for (uint32_t i = 0; i < c->o.n_cpus; i++) {
		uint16_t cpu = (uint16_t)((first + i) % c->o.n_cpus);
		struct sim_ring *r = &c->rings[cpu];

		if (r->n)
			sink->events(sink->context, cpu, r->events, r->n);
		n += (long)r->n;
		r->n = 0;
	}
	return n;
}

static void fail(struct sim_capture *c, int err)
{
	if (err && !c->o.engine->error)
		c->o.engine->error = err;
}

int sim_capture_init(struct sim_capture *c, const struct sim_capture_options *o)
{
	const struct batcher_source source = {
		.drain = source_drain,
		.cpu_stats = source_cpu_stats,
		.sample = source_sample,
		.n_cpus = o->n_cpus,
		.context = c,
	};

	memset(c, 0, sizeof(*c));
	c->o = *o;
	c->writer = frame_writer_new(engine_random(o->engine));
	c->encoder = batch_encoder_new();
	if (!c->writer || !c->encoder)
		return -ENOMEM;
	c->batcher = batcher_new_from(&source, c->writer);
	return c->batcher ? 0 : -ENOMEM;
}

void sim_capture_fini(struct sim_capture *c)
{
	batcher_free(c->batcher);
	batch_encoder_free(c->encoder);
	frame_writer_free(c->writer);
	byte_buffer_fini(&c->payload);
	byte_buffer_fini(&c->frames);
	for (size_t cpu = 0; cpu < SIM_CPUS_MAX; cpu++)
		free(c->rings[cpu].events);
}

static bool ring_grow(struct sim_capture *c, struct sim_ring *r)
{
	const int err = r->capacity == RING_EVENTS
				? -ENOSPC
				: ARRAY_RESERVE(&r->events, r->n, &r->capacity, 256);

	if (err == -ENOMEM)
		fail(c, err);
	return !err;
}

static bool is_handlers_exit(uint16_t type)
{
	return type == VS_EVENT_IRQ_EXIT || type == VS_EVENT_SOFTIRQ_EXIT ||
	       type == VS_EVENT_VECTOR_EXIT;
}

bool sim_capture_event(struct sim_capture *c, uint16_t cpu, struct vs_event e)
{
	struct sim_ring *r = &c->rings[cpu];

	if (c->mute[cpu] || (c->o.engine->now < c->no_exits_until && is_handlers_exit(e.type)))
		return false;

	/* A probe reads the clock a little after the fact. */
	e.time = clock_monotonic(&c->o.clock, c->o.engine->now) +
		 (uint64_t)engine_between(c->o.engine, 20, 400);
	if (e.time < r->newest_ns)
		e.time = r->newest_ns;
	r->newest_ns = e.time;
	e.seq = (vs_u32)r->attempted++;
	e.cpu = cpu;
	if (engine_chance(c->o.engine, c->o.loss) || (r->n == r->capacity && !ring_grow(c, r))) {
		r->dropped++;
		return false;
	}
	r->events[r->n++] = e;
	return true;
}

static void frames_deliver(struct sim_capture *c)
{
	struct frame_header header;

	for (size_t at = 0, len; at < c->frames.len; at += len) {
		if (frame_header_parse(c->frames.data + at, c->frames.len - at, &header))
			break;
		len = VS_FRAME_HEADER_BYTES + header.payload_bytes;
		c->o.frame(c->o.context, c->o.source, c->frames.data + at, len);
	}
	c->frames.len = 0;
}

void sim_capture_drain(struct sim_capture *c)
{
	long n = batcher_drain(c->batcher, &c->frames, NULL);

	fail(c, n < 0 ? (int)n : 0);
	frames_deliver(c);
}

void sim_capture_message(struct sim_capture *c, enum frame_kind kind, int err)
{
	if (!err)
		err = frame_write(c->writer, kind, c->payload.data, c->payload.len, &c->frames);
	c->payload.len = 0;
	fail(c, err);
	frames_deliver(c);
}

static struct message_clock_sample sample_now(struct sim_capture *c)
{
	struct clock_sample s;

	source_sample(c, &s);
	return (struct message_clock_sample){.tsc = s.tsc,
					     .tsc_width = s.tsc_width,
					     .monotonic_ns = s.monotonic_ns,
					     .raw_ns = s.raw_ns,
					     .realtime_ns = s.realtime_ns};
}

static struct message_dmesg_point dmesg_now(const struct sim_capture *c)
{
	if (c->o.source == 0)
		return (struct message_dmesg_point){0};
	return (struct message_dmesg_point){
		.known = true,
		.time = sim_clock_tsc(&c->o.clock, c->o.engine->now),
		.ns = GUEST_BOOTED_S * 1000000000ull + (uint64_t)(c->o.engine->now - c->o.boot),
		.err = 2000,
	};
}

void sim_capture_hello(struct sim_capture *c, const char *version, const char *boot_id)
{
	struct message_hello *m = calloc(1, sizeof(*m));
	bool guest = c->o.source != 0;

	if (!m) {
		fail(c, -ENOMEM);
		return;
	}
	m->protocol_min = VS_PROTOCOL_MIN;
	m->protocol_max = VS_PROTOCOL_MAX;
	m->role = guest ? STREAM_ROLE_GUEST : STREAM_ROLE_HOST;
	m->clock = guest ? STREAM_CLOCK_GUEST_TSC : STREAM_CLOCK_HOST_TSC;
	m->clock_hz = c->o.clock.nominal_hz;
	snprintf(m->program_version, sizeof(m->program_version), "%s", version);
	snprintf(m->kernel_release, sizeof(m->kernel_release), "simulated");
	snprintf(m->boot_id, sizeof(m->boot_id), "%s", boot_id);
	m->dmesg = dmesg_now(c);
	if (guest) {
		m->tick_hz = 250;
		m->n_cpus = c->o.n_cpus;
		for (uint32_t cpu = 0; cpu < c->o.n_cpus; cpu++)
			m->cpus[cpu] = (struct message_cpu){.cpu = cpu, .apic_id = cpu};
	}
	sim_capture_message(c, FRAME_HELLO, message_hello_pack(m, &c->payload));
	free(m);
}

void sim_capture_sample(struct sim_capture *c)
{
	struct message_clock_sample m = sample_now(c);

	sim_capture_message(c, FRAME_CLOCK_SAMPLE, message_clock_sample_pack(&m, &c->payload));
}

void sim_capture_heartbeat(struct sim_capture *c)
{
	struct batcher_totals totals;
	struct message_heartbeat m = {.time = batcher_promise(c->batcher),
				      .rss_bytes = 8 << 20,
				      .sample = sample_now(c),
				      .dmesg = dmesg_now(c)};

	batcher_totals_get(c->batcher, &totals);
	m.emitted = totals.emitted;
	m.delivered = totals.delivered;
	m.dropped_kernel = totals.dropped_kernel;
	m.dropped_user = totals.dropped_user;
	c->promised = m.time;
	sim_capture_message(c, FRAME_HEARTBEAT, message_heartbeat_pack(&m, &c->payload));
}
