// SPDX-License-Identifier: GPL-2.0-only
#include "irq_recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock/sample.h"
#include "host-collector/record/vm_clocks.h"
#include "host-collector/vm/vm.h"
#include "proto/codec.h"
#include "proto/recording.h"

enum { HEARTBEAT_MS = 100, GUEST_SESSION = 0x6d6963726f };

struct irq_recording {
	struct recording_writer *file;
	struct vm *vm;
	struct host_stream *host;
	struct vm_clocks *clocks;
	uint64_t beat_ms;
	int error; /* of the file */
};

struct guest_half {
	struct irq_recording *recording;
	struct frame_writer *writer;
	struct batch_encoder *encoder;
	struct byte_buffer payload, frame;
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void append(struct irq_recording *r, uint32_t source, uint64_t tsc, const uint8_t *frame,
		   size_t len)
{
	int error = recording_writer_append(r->file, source, tsc, frame, len);

	if (error)
		r->error = error;
}

static void on_host_frame(void *context, uint64_t tsc, struct frame_item *frame)
{
	struct frame_view view;

	if (!frame_item_frame(frame, &view))
		append(context, VS_SOURCE_HOST, tsc, view.bytes, view.len);
}

static void recording_free(struct irq_recording *r)
{
	vm_clocks_close(r->clocks);
	host_stream_close(r->host);
	vm_close(r->vm);
	if (r->file)
		recording_writer_close(r->file, 0);
	free(r);
}

int irq_recording_open(const char *path, const struct irq_vmm *v, struct irq_recording **out,
		       char *why, size_t why_bytes)
{
	struct irq_recording *r = calloc(1, sizeof(*r));
	const struct vm_options vm = {.number = IRQ_RECORDING_VM, .pid = v->pid};
	const struct host_stream_options host = {.frame = on_host_frame, .context = r};
	struct timespec t;
	int error;

	if (!r)
		return -ENOMEM;
	clock_gettime(CLOCK_REALTIME, &t);
	error = recording_writer_open(
		path, 0, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec, &r->file);
	snprintf(why, why_bytes, "%s: %s", path, strerror(-error));
	if (!error)
		error = vm_open(&vm, &r->vm, why, why_bytes);
	if (!error)
		error = host_stream_open(&host, &r->host, why, why_bytes);
	if (!error)
		error = host_stream_follow(r->host, vm_info(r->vm));
	if (!error)
		error = vm_clocks_open(r->host, CAPTURE_BY_BPF, v->pid, IRQ_RECORDING_VM,
				       &r->clocks, why, why_bytes);
	if (error)
		recording_free(r);
	else
		*out = r;
	return error;
}

int irq_recording_turn(struct irq_recording *r)
{
	uint64_t now = now_ms();
	int error = host_stream_drain(r->host, now);

	if (!error)
		error = vm_clocks_drain(r->clocks, now);
	if (!error && now - r->beat_ms >= HEARTBEAT_MS) {
		r->beat_ms = now;
		error = host_stream_heartbeat(r->host);
	}
	return error ? error : r->error;
}

/* ---- the guest's half ---- */

static int guest_frame(struct guest_half *g, enum frame_kind kind, int error)
{
	g->frame.len = 0;
	if (!error)
		error = frame_write(g->writer, kind, g->payload.data, g->payload.len, &g->frame);
	if (!error)
		append(g->recording, IRQ_RECORDING_VM, clock_tsc_read(), g->frame.data,
		       g->frame.len);
	g->payload.len = 0;
	return error;
}

static int guest_hello(struct guest_half *g)
{
	struct message_hello *m = calloc(1, sizeof(*m));
	int error;

	if (!m)
		return -ENOMEM;
	m->protocol_min = VS_PROTOCOL_MIN;
	m->protocol_max = VS_PROTOCOL_MAX;
	m->role = STREAM_ROLE_GUEST;
	m->clock = STREAM_CLOCK_GUEST_TSC;
	m->clock_hz = host_stream_hello(g->recording->host)->clock_hz;
	snprintf(m->program_version, sizeof(m->program_version), "the micro-guest's own log");
	snprintf(m->kernel_release, sizeof(m->kernel_release), "none: a micro-guest");
	m->n_cpus = IRQ_VMM_VCPUS;
	for (uint32_t i = 0; i < IRQ_VMM_VCPUS; i++)
		m->cpus[i] = (struct message_cpu){.cpu = i, .apic_id = i};
	error = guest_frame(g, FRAME_HELLO, message_hello_pack(m, &g->payload));
	free(m);
	return error;
}

static uint64_t kernel_name_of(uint64_t vector)
{
	return vector == IRQ_VECTOR_TIMER ? VS_VECTOR_LOCAL_TIMER
	       : vector == IRQ_VECTOR_IPI ? VS_VECTOR_RESCHEDULE
					  : 0;
}

static int guest_batches(struct guest_half *g, const struct irq_guest_cpu *cpu, uint16_t number)
{
	static struct vs_event events[VS_BATCH_EVENTS_MAX];
	size_t n = 0;
	int error = 0;

	for (uint64_t i = 0; i < cpu->n_log && !error; i++) {
		const struct irq_guest_entry *log = &cpu->log[i];
		struct vs_event e = {.cpu = number,
				     .time = log->entry,
				     .seq = (uint32_t)(2 * i),
				     .type = VS_EVENT_VECTOR_ENTRY,
				     .arg0 = kernel_name_of(log->vector),
				     .arg1 = log->vector};

		events[n++] = e;
		e.time = log->exit;
		e.seq++;
		e.type = VS_EVENT_VECTOR_EXIT;
		events[n++] = e;
		if (n == VS_BATCH_EVENTS_MAX || i + 1 == cpu->n_log) {
			const struct batch b = {.cpu = number,
						.watermark = log->exit,
						.emitted = 2 * (i + 1),
						.n_events = n,
						.events = events};

			error = guest_frame(g, FRAME_BATCH,
					    batch_encode(g->encoder, &b, &g->payload));
			n = 0;
		}
	}
	return error;
}

static int guest_heartbeat(struct guest_half *g, const struct irq_vmm *v)
{
	struct message_heartbeat m = {0};

	for (uint32_t i = 0; i < IRQ_VMM_VCPUS; i++) {
		const struct irq_guest_cpu *cpu = irq_vmm_cpu(v, i);

		m.emitted += 2 * cpu->n_log;
		if (cpu->n_log && cpu->log[cpu->n_log - 1].exit > m.time)
			m.time = cpu->log[cpu->n_log - 1].exit;
	}
	m.delivered = m.emitted;
	return guest_frame(g, FRAME_HEARTBEAT, message_heartbeat_pack(&m, &g->payload));
}

static int guest_write(struct irq_recording *r, const struct irq_vmm *v)
{
	struct guest_half g = {.recording = r,
			       .writer = frame_writer_new(GUEST_SESSION),
			       .encoder = batch_encoder_new()};
	int error = g.writer && g.encoder ? guest_hello(&g) : -ENOMEM;

	for (uint16_t i = 0; i < IRQ_VMM_VCPUS && !error; i++)
		error = guest_batches(&g, irq_vmm_cpu(v, i), i);
	if (!error)
		error = guest_heartbeat(&g, v);
	byte_buffer_fini(&g.payload);
	byte_buffer_fini(&g.frame);
	batch_encoder_free(g.encoder);
	frame_writer_free(g.writer);
	return error;
}

/* An interrupt from outside is a round trip: raised, taken, ended, seen to have ended. */
static int round_trips_write(struct irq_recording *r, const struct irq_vmm *v)
{
	int error = 0;

	for (uint64_t i = 0; i < v->truth->n_raised && !error; i++) {
		const struct irq_raised *raised = &v->truth->raised[i];
		const struct irq_guest_entry *log = &irq_vmm_cpu(v, raised->vcpu)->log[raised->log];
		const struct message_echo_observation m = {.vm = IRQ_RECORDING_VM,
							   .host_sent = raised->before,
							   .guest_received = log->entry,
							   .guest_sent = log->exit,
							   .host_received = raised->seen};

		if (raised->seen && !raised->again)
			error = host_stream_observation(r->host, &m);
	}
	return error;
}

int irq_recording_close(struct irq_recording *r, const struct irq_vmm *v,
			struct host_stream_stats *stats)
{
	int error = irq_recording_turn(r), closed;

	if (!error)
		error = round_trips_write(r, v);
	if (!error)
		error = host_stream_heartbeat(r->host);
	if (!error)
		error = guest_write(r, v);
	host_stream_stats_get(r->host, stats);
	closed = recording_writer_close(r->file, stats->events.dropped_kernel);
	r->file = NULL;
	error = error ? error : r->error ? r->error : closed;
	recording_free(r);
	return error;
}
