/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/unit/synth.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/recording.h"

enum {
	CPUS_MAX = 16,
	PENDING_MAX = 65536,
	ECHO_EVERY_NS = 100000000,
	LATENCY_NS = 150000, /* of the channel, plus up to as much again */
};
static const int64_t realtime_ns0 = 1700000000000000000;

/* Unlike assert, it is there in every build. */
#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "synth: %s:%d: %s\n", __FILE__, __LINE__, #condition);     \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct side {
	uint32_t source;
	struct frame_writer *writer;
	uint32_t n_cpus;
	uint64_t hz;
	uint64_t tsc0; /* of its own clock, at the scene's start */
	uint32_t seq[CPUS_MAX];
	uint64_t emitted[CPUS_MAX], dropped[CPUS_MAX];
	struct vs_event *pending[CPUS_MAX];
	size_t n_pending[CPUS_MAX];
};

struct synth {
	struct synth_options options;
	struct recording_writer *recording;
	struct batch_encoder *encoder;
	struct side host, guest;
	struct byte_buffer payload, frame;
	int64_t now, next_drain, next_echo;
	int64_t pause_begin, pause_end; /* of the VM; 0 none */
	int64_t guest_drained;          /* when the guest's side was drained last */
	int64_t wall_ns;                /* by how much the wall clock was set */
	int64_t boot_ns;                /* when the guest's kernel booted */
	const char *boot_id;
	uint64_t sessions;
	bool silent, loses;
	uint64_t random;
};

static uint64_t side_tsc(const struct side *side, int64_t t_ns)
{
	return side->tsc0 + (uint64_t)((__int128)t_ns * (__int128)side->hz / 1000000000);
}

static int64_t latency(struct synth *s)
{
	s->random = s->random * 6364136223846793005ull + 1442695040888963407ull;
	return LATENCY_NS + (int64_t)((s->random >> 33) % LATENCY_NS);
}

static void put(struct synth *s, struct side *side, enum frame_kind kind, const uint8_t *payload,
		size_t len, int64_t arrival_ns)
{
	uint64_t arrival = side_tsc(&s->host, arrival_ns);
	struct frame_view view;

	s->frame.len = 0;
	must(!frame_write(side->writer, kind, payload, len, &s->frame));
	if ((side == &s->host && s->options.no_host) ||
	    (side == &s->guest && (s->options.no_guest || s->loses)))
		return;
	if (s->recording)
		must(!recording_writer_append(s->recording, side->source, arrival, s->frame.data,
					      s->frame.len));
	if (s->options.entry) {
		must(!frame_parse(s->frame.data, s->frame.len, &view));
		s->options.entry(s->options.context, side->source, arrival, &view);
	}
}

/* Packs `m` and frames it. */
#define PUT(s, side, kind, pack, m, arrival_ns)                                                    \
	do {                                                                                       \
		(s)->payload.len = 0;                                                              \
		must(!pack(m, &(s)->payload));                                                     \
		put(s, side, kind, (s)->payload.data, (s)->payload.len, arrival_ns);               \
	} while (0)

static struct message_clock_sample sample_at(const struct synth *s, const struct side *side,
					     int64_t t_ns)
{
	return (struct message_clock_sample){
		.tsc = side_tsc(side, t_ns),
		.tsc_width = 100,
		.monotonic_ns = (uint64_t)(synth_raw_ns0 + t_ns),
		.raw_ns = (uint64_t)(synth_raw_ns0 + t_ns),
		.realtime_ns = (uint64_t)(realtime_ns0 + t_ns + s->wall_ns),
	};
}

static struct message_dmesg_point dmesg_at(const struct synth *s, int64_t t_ns)
{
	return (struct message_dmesg_point){.known = true,
					    .time = side_tsc(&s->guest, t_ns),
					    .ns = (uint64_t)(t_ns - s->boot_ns),
					    .err = 10};
}

static void side_init(struct side *side, uint32_t source, uint32_t n_cpus, uint64_t hz,
		      uint64_t tsc0)
{
	must(n_cpus <= CPUS_MAX);
	*side = (struct side){.source = source, .n_cpus = n_cpus, .hz = hz, .tsc0 = tsc0};
	side->writer = frame_writer_new(0x1000 + source);
	must(side->writer);
	for (uint32_t cpu = 0; cpu < n_cpus; cpu++) {
		side->pending[cpu] = malloc(PENDING_MAX * sizeof(struct vs_event));
		must(side->pending[cpu]);
	}
}

static void side_fini(struct side *side)
{
	frame_writer_free(side->writer);
	for (uint32_t cpu = 0; cpu < side->n_cpus; cpu++)
		free(side->pending[cpu]);
}

static void hello_put(struct synth *s, struct side *side)
{
	struct message_hello *m = calloc(1, sizeof(*m));
	bool guest = side == &s->guest;

	must(m);
	m->protocol_min = VS_PROTOCOL_MIN;
	m->protocol_max = VS_PROTOCOL_MAX;
	m->role = guest ? STREAM_ROLE_GUEST : STREAM_ROLE_HOST;
	m->clock = guest ? STREAM_CLOCK_GUEST_TSC : STREAM_CLOCK_HOST_TSC;
	m->clock_hz = side->hz;
	strcpy(m->program_version, "synth");
	strcpy(m->kernel_release, "6.1.0-synth");
	strcpy(m->boot_id, guest ? s->boot_id : "host");
	if (guest)
		m->dmesg = dmesg_at(s, s->now);
	m->tick_hz = 250;
	m->n_cpus = side->n_cpus;
	for (uint32_t cpu = 0; cpu < side->n_cpus; cpu++)
		m->cpus[cpu] = (struct message_cpu){.cpu = cpu, .apic_id = cpu};
	PUT(s, side, FRAME_HELLO, message_hello_pack, m, s->now + (guest ? latency(s) : 0));
	free(m);
}

static void vm_put(struct synth *s)
{
	struct message_vm_info *m = calloc(1, sizeof(*m));

	must(m);
	m->vm = SYNTH_VM;
	strcpy(m->name, "web1");
	m->qemu_pid = SYNTH_QEMU_PID;
	strcpy(m->accelerator, "kvm");
	m->protection = s->options.protection;
	m->n_threads = 1 + s->guest.n_cpus;
	m->threads[0] = (struct message_vm_thread){.tid = SYNTH_QEMU_PID, .comm = "qemu-main"};
	for (uint32_t i = 0; i < s->guest.n_cpus; i++) {
		struct message_vm_thread *t = &m->threads[1 + i];

		*t = (struct message_vm_thread){.tid = (int32_t)(SYNTH_QEMU_PID + 1 + i),
						.is_vcpu = true,
						.vcpu = i,
						.apic_id_known = true,
						.apic_id = i};
		snprintf(t->comm, sizeof(t->comm), "CPU %u/KVM", i % 100);
	}
	PUT(s, &s->host, FRAME_VM_INFO, message_vm_info_pack, m, s->now);
	free(m);
}

struct synth *synth_new(const struct synth_options *options)
{
	struct synth *s = calloc(1, sizeof(*s));

	must(s);
	s->options = *options;
	s->random = 42;
	s->boot_ns = -100000000000;
	s->boot_id = "guest";
	if (!s->options.host_hz)
		s->options.host_hz = 2500000000;
	if (!s->options.guest_hz)
		s->options.guest_hz = s->options.host_hz;
	if (!s->options.drain_ns)
		s->options.drain_ns = 50000000;
	s->encoder = batch_encoder_new();
	batch_encoder_relay(s->encoder); /* a script may hold a newer peer's events */
	must(s->encoder);
	if (options->path)
		must(!recording_writer_open(options->path, VS_RECORDING_SIMULATED,
					    (uint64_t)realtime_ns0, &s->recording));
	side_init(&s->host, VS_SOURCE_HOST, options->host_cpus ? options->host_cpus : 2,
		  s->options.host_hz, synth_host_tsc0);
	side_init(&s->guest, SYNTH_VM, options->guest_cpus ? options->guest_cpus : 2,
		  s->options.guest_hz, (uint64_t)options->guest_tsc_offset);
	hello_put(s, &s->host);
	vm_put(s);
	hello_put(s, &s->guest);
	s->next_drain = (int64_t)s->options.drain_ns;
	s->next_echo = 1000000;
	return s;
}

/* The agent knows its clocks at two drains, and not that the one stood still in between. */
static void chord_make(const struct synth *s, struct batch *b)
{
	const uint64_t begin = side_tsc(&s->guest, s->guest_drained),
		       end = side_tsc(&s->guest, s->now);
	const double pause = (double)(side_tsc(&s->guest, s->pause_end) -
				      side_tsc(&s->guest, s->pause_begin)),
		     length = (double)(end - begin);

	b->chord_begin = begin;
	b->chord_end = end;
	for (size_t i = 0; i < b->n_events; i++) {
		struct vs_event *e = &b->events[i];
		double gone = (double)(e->time - begin), at, err;

		if (e->time > side_tsc(&s->guest, s->pause_begin))
			gone -= pause;
		at = gone / (length - pause);
		e->time = begin + (uint64_t)(at * length);
		err = pause * (at > 0.5 ? at : 1 - at) + 50;
		b->time_err = err > (double)b->time_err ? (uint64_t)err : b->time_err;
	}
}

static void cpu_drain(struct synth *s, struct side *side, uint16_t cpu, int64_t arrival)
{
	size_t n = side->n_pending[cpu], at = 0;

	while (at < n) {
		size_t slice = n - at < VS_BATCH_EVENTS_MAX ? n - at : VS_BATCH_EVENTS_MAX;
		struct batch b = {
			.cpu = cpu,
			.time_err = 50,
			.watermark = side_tsc(side, s->now),
			.emitted = side->emitted[cpu],
			.dropped_kernel = side->dropped[cpu],
			.tsc_cpu = side == &s->guest ? s->options.tsc_cpu : 0,
			.n_events = slice,
			.events = side->pending[cpu] + at,
		};

		if (side == &s->guest && s->pause_end > s->guest_drained)
			chord_make(s, &b);
		s->payload.len = 0;
		must(!batch_encode(s->encoder, &b, &s->payload));
		put(s, side, FRAME_BATCH, s->payload.data, s->payload.len, arrival);
		at += slice;
	}
	side->n_pending[cpu] = 0;
}

static void side_drain(struct synth *s, struct side *side)
{
	struct message_heartbeat beat = {.time = side_tsc(side, s->now),
					 .rss_bytes = 8 << 20,
					 .sample = sample_at(s, side, s->now)};
	int64_t arrival = s->now + (side == &s->guest ? latency(s) : 0);

	for (uint16_t cpu = 0; cpu < side->n_cpus; cpu++) {
		cpu_drain(s, side, cpu, arrival);
		beat.emitted += side->emitted[cpu];
	}
	if (side == &s->guest)
		s->guest_drained = s->now;
	if (side == &s->guest)
		beat.dmesg = dmesg_at(s, s->now);
	PUT(s, side, FRAME_HEARTBEAT, message_heartbeat_pack, &beat, arrival);
}

static void echo(struct synth *s)
{
	int64_t there = s->now + latency(s), back = there + 20000, home = back + latency(s);
	uint64_t lie = side_tsc(&s->guest, s->options.echo_lie_ns) - s->guest.tsc0;
	struct message_echo_observation o = {
		.vm = SYNTH_VM,
		.host_sent = side_tsc(&s->host, s->now),
		.guest_received = side_tsc(&s->guest, there) + lie,
		.guest_sent = side_tsc(&s->guest, back) + lie,
		.host_received = side_tsc(&s->host, home),
	};

	if (!s->options.no_echo && !s->options.no_guest)
		PUT(s, &s->host, FRAME_ECHO_OBSERVATION, message_echo_observation_pack, &o, home);
}

void synth_at(struct synth *s, int64_t t_ns)
{
	must(t_ns >= s->now);
	while (s->next_drain <= t_ns || s->next_echo <= t_ns) {
		if (s->next_drain <= s->next_echo) {
			s->now = s->next_drain;
			s->next_drain += (int64_t)s->options.drain_ns;
			if (!s->silent)
				side_drain(s, &s->guest);
			side_drain(s, &s->host);
		} else {
			s->now = s->next_echo;
			s->next_echo += ECHO_EVERY_NS;
			if (!s->silent)
				echo(s);
		}
	}
	s->now = t_ns;
}

static void side_event(struct synth *s, struct side *side, uint16_t cpu, struct vs_event e)
{
	must(cpu < side->n_cpus && side->n_pending[cpu] < PENDING_MAX);
	e.time = side_tsc(side, s->now);
	e.seq = side->seq[cpu]++;
	e.cpu = cpu;
	side->emitted[cpu]++;
	side->pending[cpu][side->n_pending[cpu]++] = e;
}

void synth_host_event(struct synth *s, uint16_t cpu, struct vs_event e)
{
	side_event(s, &s->host, cpu, e);
}

void synth_guest_event(struct synth *s, uint16_t cpu, struct vs_event e)
{
	side_event(s, &s->guest, cpu, e);
}

void synth_guest_lose(struct synth *s, uint16_t cpu, uint32_t n)
{
	s->guest.seq[cpu] += n;
	s->guest.emitted[cpu] += n;
	s->guest.dropped[cpu] += n;
}

void synth_guest_silent(struct synth *s, bool silent)
{
	s->silent = silent;
}

uint64_t synth_guest_tsc(const struct synth *s)
{
	return side_tsc(&s->guest, s->now);
}

void synth_guest_pause(struct synth *s, int64_t end_ns)
{
	s->pause_begin = s->now;
	s->pause_end = end_ns;
}

void synth_wall_step(struct synth *s, int64_t by_ns)
{
	s->wall_ns += by_ns;
}

void synth_guest_hello(struct synth *s)
{
	frame_writer_free(s->guest.writer);
	s->guest.writer = frame_writer_new(0x2000 + ++s->sessions);
	must(s->guest.writer);
	hello_put(s, &s->guest);
}

static void guest_counters_clear(struct side *g)
{
	for (uint32_t cpu = 0; cpu < g->n_cpus; cpu++) {
		g->n_pending[cpu] = 0;
		g->seq[cpu] = 0;
		g->emitted[cpu] = g->dropped[cpu] = 0;
	}
}

void synth_guest_boot(struct synth *s, const char *boot_id, uint64_t tsc)
{
	s->boot_id = boot_id;
	s->boot_ns = s->now;
	s->guest.tsc0 = 0;
	s->guest.tsc0 = tsc - synth_guest_tsc(s);
	guest_counters_clear(&s->guest);
	synth_guest_hello(s);
}

void synth_guest_restart(struct synth *s)
{
	guest_counters_clear(&s->guest);
	synth_guest_hello(s);
}

void synth_note(struct synth *s, enum note_kind kind, const char *text)
{
	struct message_note m = {
		.vm = SYNTH_VM, .kind = kind, .host_tsc = side_tsc(&s->host, s->now)};

	snprintf(m.text, sizeof(m.text), "%s", text);
	PUT(s, &s->host, FRAME_NOTE, message_note_pack, &m, s->now);
}

void synth_quota(struct synth *s, int64_t from_ns, int64_t throttled_ns)
{
	struct message_cpu_quota *m = calloc(1, sizeof(*m));

	must(m);
	*m = (struct message_cpu_quota){.vm = SYNTH_VM,
					.n_vcpus = 1,
					.from = side_tsc(&s->host, from_ns),
					.until = side_tsc(&s->host, s->now),
					.quota_us = 10000,
					.period_us = 100000,
					.periods = throttled_ns > 0,
					.throttled_ns = (uint64_t)throttled_ns,
					.cgroup = "/machine.slice/synth.scope"};
	PUT(s, &s->host, FRAME_CPU_QUOTA, message_cpu_quota_pack, m, s->now);
	free(m);
}

void synth_channel_loses(struct synth *s, bool loses)
{
	s->loses = loses;
}

void synth_frame(struct synth *s, uint32_t source, enum frame_kind kind, const uint8_t *payload,
		 size_t len)
{
	put(s, source == VS_SOURCE_HOST ? &s->host : &s->guest, kind, payload, len, s->now);
}

void synth_free(struct synth *s)
{
	if (!s->silent) {
		side_drain(s, &s->guest);
		echo(s);
	}
	side_drain(s, &s->host);
	must(!s->recording || !recording_writer_close(s->recording, 0));
	side_fini(&s->host);
	side_fini(&s->guest);
	batch_encoder_free(s->encoder);
	byte_buffer_fini(&s->payload);
	byte_buffer_fini(&s->frame);
	free(s);
}

int64_t synth_host_ns(int64_t t_ns)
{
	return synth_raw_ns0 + t_ns;
}

struct vs_event synth_switch(int32_t out, uint32_t state, int32_t in)
{
	return (struct vs_event){.type = VS_EVENT_SCHED_SWITCH,
				 .pid = out,
				 .pid2 = in,
				 .arg0 = state,
				 .arg1 = 120 | 120ull << 32};
}

struct vs_event synth_wakeup(int32_t pid, int32_t by, uint32_t target_cpu)
{
	return (struct vs_event){.type = VS_EVENT_SCHED_WAKEUP,
				 .pid = pid,
				 .pid2 = by,
				 .arg0 = target_cpu,
				 .arg1 = 120};
}

struct vs_event synth_name(int32_t pid, int32_t tgid, const char *comm)
{
	char name[16] = "";
	struct vs_event e = {.type = VS_EVENT_TASK_NAME, .pid = pid, .pid2 = tgid};

	memcpy(name, comm, strlen(comm) < 15 ? strlen(comm) : 15);
	memcpy(&e.arg0, name, 8);
	memcpy(&e.arg1, name + 8, 8);
	return e;
}
