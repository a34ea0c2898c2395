// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages that both sides of a channel send. Unpacking uses an arena whose limit depends on the
 * size of the payload, so the memory that a message can use is proportional to its size.
 */
#include "proto/message.h"

#include <errno.h>
#include <string.h>
#include <stdlib.h>

#include "proto/message_wire.h"
#include "proto/text.h"

enum {
	/* The most protobuf-c takes per wire byte is for an empty sub-message: two bytes become
	 * a struct of up to 80, a pointer and two scan records. */
	WIRE_ARENA_PER_BYTE = 128,
	WIRE_ARENA_BASE_BYTES = 4096,
	WIRE_ARENA_MAX_BYTES = 4 * 1024 * 1024,
};

int wire_unpack(struct arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *payload,
		size_t len, void *message)
{
	size_t limit = WIRE_ARENA_MAX_BYTES;
	ProtobufCMessage *base;
	int err;

	if (len < WIRE_ARENA_MAX_BYTES / WIRE_ARENA_PER_BYTE - WIRE_ARENA_BASE_BYTES)
		limit = WIRE_ARENA_BASE_BYTES + len * WIRE_ARENA_PER_BYTE;
	arena_init(a, limit);
	err = arena_unpack(a, type, payload, len, &base);
	*(ProtobufCMessage **)message = base;
	return err;
}

int wire_pack(const ProtobufCMessage *message, struct byte_buffer *out)
{
	int err = byte_buffer_reserve(out, protobuf_c_message_get_packed_size(message));

	if (!err)
		out->len += protobuf_c_message_pack(message, out->data + out->len);
	return err;
}

int message_hello_pack(const struct message_hello *m, struct byte_buffer *out)
{
	WIRE(Hello) w = VCPUSCOPE__WIRE__HELLO__INIT;
	WIRE(Cpu) *cpus = NULL;
	int err = -ENOMEM;

	if (m->n_cpus > VS_CPUS_MAX)
		return -E2BIG;
	cpus = calloc(m->n_cpus + 1, sizeof(*cpus));
	w.cpus = calloc(m->n_cpus + 1, sizeof(*w.cpus));
	if (!cpus || !w.cpus)
		goto out;
	w.protocol_min = m->protocol_min;
	w.protocol_max = m->protocol_max;
	w.role = m->role;
	w.clock = m->clock;
	w.clock_hz = m->clock_hz;
	w.program_version = (char *)m->program_version;
	w.kernel_release = (char *)m->kernel_release;
	w.boot_id = (char *)m->boot_id;
	w.dmesg_known = m->dmesg.known;
	w.dmesg_time = m->dmesg.time;
	w.dmesg_ns = m->dmesg.ns;
	w.dmesg_err = m->dmesg.err;
	w.tick_hz = m->tick_hz;
	w.watchdog_s = m->watchdog_s;
	w.suspended_ns = m->suspended_ns;
	w.features = m->features;
	w.n_cpus = m->n_cpus;
	for (size_t i = 0; i < m->n_cpus; i++) {
		vcpuscope__wire__cpu__init(&cpus[i]);
		cpus[i].cpu = m->cpus[i].cpu;
		cpus[i].apic_id = m->cpus[i].apic_id;
		w.cpus[i] = &cpus[i];
	}
	err = wire_pack(&w.base, out);
out:
	free(w.cpus);
	free(cpus);
	return err;
}

static int hello_check(const WIRE(Hello) * w)
{
	if (w->n_cpus > VS_CPUS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < w->n_cpus; i++)
		if (w->cpus[i]->cpu >= VS_CPUS_MAX)
			return -E2BIG;
	if (w->role < STREAM_ROLE_HOST || w->role > STREAM_ROLE_GUEST ||
	    w->clock < STREAM_CLOCK_HOST_TSC || w->clock > STREAM_CLOCK_KVMCLOCK_NS ||
	    !w->clock_hz || w->protocol_min > w->protocol_max)
		return -EBADMSG;
	return 0;
}

int message_hello_unpack(const uint8_t *payload, size_t len, struct message_hello *m)
{
	struct arena a;
	WIRE(Hello) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__hello__descriptor, payload, len, &w);

	if (!err)
		err = hello_check(w);
	if (err)
		goto out;
	m->protocol_min = w->protocol_min;
	m->protocol_max = w->protocol_max;
	m->role = w->role;
	m->clock = w->clock;
	m->clock_hz = w->clock_hz;
	text_copy(m->program_version, sizeof(m->program_version), w->program_version);
	text_copy(m->kernel_release, sizeof(m->kernel_release), w->kernel_release);
	text_copy(m->boot_id, sizeof(m->boot_id), w->boot_id);
	m->dmesg.known = w->dmesg_known;
	m->dmesg.time = w->dmesg_time;
	m->dmesg.ns = w->dmesg_ns;
	m->dmesg.err = w->dmesg_err;
	m->tick_hz = w->tick_hz;
	m->watchdog_s = w->watchdog_s;
	m->suspended_ns = w->suspended_ns;
	m->features = w->features;
	m->n_cpus = w->n_cpus;
	for (size_t i = 0; i < w->n_cpus; i++) {
		m->cpus[i].cpu = w->cpus[i]->cpu;
		m->cpus[i].apic_id = w->cpus[i]->apic_id;
	}
out:
	arena_fini(&a);
	return err;
}

static void clock_sample_to_wire(const struct message_clock_sample *m, WIRE(ClockSample) * w)
{
	w->tsc = m->tsc;
	w->tsc_width = m->tsc_width;
	w->monotonic_ns = m->monotonic_ns;
	w->raw_ns = m->raw_ns;
	w->realtime_ns = m->realtime_ns;
}

static void clock_sample_from_wire(const WIRE(ClockSample) * w, struct message_clock_sample *m)
{
	m->tsc = w->tsc;
	m->tsc_width = w->tsc_width;
	m->monotonic_ns = w->monotonic_ns;
	m->raw_ns = w->raw_ns;
	m->realtime_ns = w->realtime_ns;
}

int message_clock_sample_pack(const struct message_clock_sample *m, struct byte_buffer *out)
{
	WIRE(ClockSample) w = VCPUSCOPE__WIRE__CLOCK_SAMPLE__INIT;

	clock_sample_to_wire(m, &w);
	return wire_pack(&w.base, out);
}

int message_clock_sample_unpack(const uint8_t *payload, size_t len, struct message_clock_sample *m)
{
	struct arena a;
	WIRE(ClockSample) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__clock_sample__descriptor, payload, len, &w);

	if (!err)
		clock_sample_from_wire(w, m);
	arena_fini(&a);
	return err;
}

void wire_pvclock_fill(WIRE(VmClockPvclock) * w, const struct message_vm_clock_pvclock *m)
{
	w->tsc_timestamp = m->tsc_timestamp;
	w->system_time = m->system_time;
	w->mul = m->mul;
	w->shift = m->shift;
	w->flags = m->flags;
	w->version = m->version;
}

bool wire_pvclock_read(const WIRE(VmClockPvclock) * w, struct message_vm_clock_pvclock *m)
{
	/* Whoever converts by these parameters relies on what is checked here. */
	if (!w->mul || w->shift < -31 || w->shift > 31 || w->flags > UINT8_MAX)
		return false;
	/* Field by field: an assigned literal would bring whatever it has between the fields. */
	m->known = true;
	m->shift = (int8_t)w->shift;
	m->flags = (uint8_t)w->flags;
	m->mul = w->mul;
	m->version = w->version;
	m->tsc_timestamp = w->tsc_timestamp;
	m->system_time = w->system_time;
	return true;
}

static void steal_from_wire(const WIRE(Steal) * w, struct message_steal *m)
{
	m->known = true;
	m->clock = w->clock;
	m->time = w->time;
	m->err = w->err;
	m->unit_ns = w->unit_ns;
	m->n_cpus = w->n_cpus;
	for (size_t i = 0; i < w->n_cpus; i++) {
		m->cpus[i].cpu = w->cpus[i]->cpu;
		m->cpus[i].steal_ns = w->cpus[i]->steal_ns;
	}
}

/* Of a class that we do not know nothing can be said. */
static void untold_from_wire(const WIRE(Heartbeat) * w, struct message_untold *m)
{
	memset(m, 0, EVENT_CLASSES * sizeof(*m));
	for (size_t i = 0; i < w->n_untold; i++) {
		const WIRE(Untold) *from = w->untold[i];

		if (from->class_ >= EVENT_CLASSES || !from->count)
			continue;
		m[from->class_].count = from->count;
		m[from->class_].total_ns = from->total_ns;
		m[from->class_].max_ns = from->max_ns;
	}
}

/* 0 or -E2BIG. */
static int steal_check(const WIRE(Steal) * w)
{
	if (w->n_cpus > VS_CPUS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < w->n_cpus; i++) {
		if (w->cpus[i]->cpu >= VS_CPUS_MAX)
			return -E2BIG;
	}
	return 0;
}

int message_heartbeat_pack(const struct message_heartbeat *m, struct byte_buffer *out)
{
	WIRE(Heartbeat) w = VCPUSCOPE__WIRE__HEARTBEAT__INIT;
	WIRE(ClockSample) sample = VCPUSCOPE__WIRE__CLOCK_SAMPLE__INIT;
	WIRE(VmClockPvclock) pvclock = VCPUSCOPE__WIRE__VM_CLOCK_PVCLOCK__INIT;
	WIRE(Steal) steal = VCPUSCOPE__WIRE__STEAL__INIT;
	WIRE(CpuSteal) cpus[VS_CPUS_MAX], *list[VS_CPUS_MAX];
	WIRE(Untold) untold[EVENT_CLASSES], *untold_list[EVENT_CLASSES];

	if (m->steal.n_cpus > VS_CPUS_MAX)
		return -E2BIG;
	clock_sample_to_wire(&m->sample, &sample);
	w.time = m->time;
	w.cpu_time_ns = m->cpu_time_ns;
	w.rss_bytes = m->rss_bytes;
	w.emitted = m->emitted;
	w.delivered = m->delivered;
	w.dropped_kernel = m->dropped_kernel;
	w.dropped_user = m->dropped_user;
	w.missed = m->missed;
	w.watchdog = m->watchdog;
	w.untold = untold_list;
	for (uint32_t i = 0; i < EVENT_CLASSES; i++) {
		if (!m->untold[i].count)
			continue;
		vcpuscope__wire__untold__init(&untold[i]);
		untold[i].class_ = i;
		untold[i].count = m->untold[i].count;
		untold[i].total_ns = m->untold[i].total_ns;
		untold[i].max_ns = m->untold[i].max_ns;
		untold_list[w.n_untold++] = &untold[i];
	}
	w.sample = &sample;
	w.dmesg_known = m->dmesg.known;
	w.dmesg_time = m->dmesg.time;
	w.dmesg_ns = m->dmesg.ns;
	w.dmesg_err = m->dmesg.err;
	wire_pvclock_fill(&pvclock, &m->pvclock);
	w.pvclock = m->pvclock.known ? &pvclock : NULL;
	for (size_t i = 0; i < m->steal.n_cpus; i++) {
		vcpuscope__wire__cpu_steal__init(&cpus[i]);
		cpus[i].cpu = m->steal.cpus[i].cpu;
		cpus[i].steal_ns = m->steal.cpus[i].steal_ns;
		list[i] = &cpus[i];
	}
	steal.clock = m->steal.clock;
	steal.time = m->steal.time;
	steal.err = m->steal.err;
	steal.unit_ns = m->steal.unit_ns;
	steal.n_cpus = m->steal.n_cpus;
	steal.cpus = list;
	w.steal = m->steal.known ? &steal : NULL;
	return wire_pack(&w.base, out);
}

int message_heartbeat_unpack(const uint8_t *payload, size_t len, struct message_heartbeat *m)
{
	static const WIRE(ClockSample) no_sample = VCPUSCOPE__WIRE__CLOCK_SAMPLE__INIT;
	struct arena a;
	WIRE(Heartbeat) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__heartbeat__descriptor, payload, len, &w);

	memset(&m->pvclock, 0, sizeof(m->pvclock));
	memset(&m->steal, 0, sizeof(m->steal));
	if (!err && w->steal)
		err = steal_check(w->steal);
	if (!err && w->pvclock && !wire_pvclock_read(w->pvclock, &m->pvclock))
		err = -EBADMSG;
	if (err)
		goto out;
	m->time = w->time;
	m->cpu_time_ns = w->cpu_time_ns;
	m->rss_bytes = w->rss_bytes;
	m->emitted = w->emitted;
	m->delivered = w->delivered;
	m->dropped_kernel = w->dropped_kernel;
	m->dropped_user = w->dropped_user;
	m->missed = w->missed;
	m->watchdog = w->watchdog;
	untold_from_wire(w, m->untold);
	clock_sample_from_wire(w->sample ? w->sample : &no_sample, &m->sample);
	m->dmesg.known = w->dmesg_known;
	m->dmesg.time = w->dmesg_time;
	m->dmesg.ns = w->dmesg_ns;
	m->dmesg.err = w->dmesg_err;
	if (w->steal)
		steal_from_wire(w->steal, &m->steal);
out:
	arena_fini(&a);
	return err;
}

int message_echo_request_pack(const struct message_echo_request *m, struct byte_buffer *out)
{
	WIRE(EchoRequest) w = VCPUSCOPE__WIRE__ECHO_REQUEST__INIT;

	w.id = m->id;
	return wire_pack(&w.base, out);
}

int message_echo_request_unpack(const uint8_t *payload, size_t len, struct message_echo_request *m)
{
	struct arena a;
	WIRE(EchoRequest) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__echo_request__descriptor, payload, len, &w);

	if (!err)
		m->id = w->id;
	arena_fini(&a);
	return err;
}

int message_echo_reply_pack(const struct message_echo_reply *m, struct byte_buffer *out)
{
	WIRE(EchoReply) w = VCPUSCOPE__WIRE__ECHO_REPLY__INIT;

	w.id = m->id;
	w.received = m->received;
	w.sent = m->sent;
	return wire_pack(&w.base, out);
}

int message_echo_reply_unpack(const uint8_t *payload, size_t len, struct message_echo_reply *m)
{
	struct arena a;
	WIRE(EchoReply) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__echo_reply__descriptor, payload, len, &w);

	if (!err) {
		m->id = w->id;
		m->received = w->received;
		m->sent = w->sent;
	}
	arena_fini(&a);
	return err;
}

int message_kernel_log_pack(const struct message_kernel_log *m, struct byte_buffer *out)
{
	WIRE(KernelLog) w = VCPUSCOPE__WIRE__KERNEL_LOG__INIT;
	WIRE(KernelLogLine) lines[VS_LOG_LINES_MAX], *list[VS_LOG_LINES_MAX];

	if (m->n_lines > VS_LOG_LINES_MAX)
		return -E2BIG;
	for (size_t i = 0; i < m->n_lines; i++) {
		vcpuscope__wire__kernel_log_line__init(&lines[i]);
		lines[i].dmesg_us = m->lines[i].dmesg_us;
		lines[i].level = m->lines[i].level;
		lines[i].text = (char *)m->lines[i].text;
		list[i] = &lines[i];
	}
	w.n_lines = m->n_lines;
	w.lines = list;
	return wire_pack(&w.base, out);
}

int message_kernel_log_unpack(const uint8_t *payload, size_t len, struct message_kernel_log *m)
{
	struct arena a;
	WIRE(KernelLog) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__kernel_log__descriptor, payload, len, &w);

	if (!err && w->n_lines > VS_LOG_LINES_MAX)
		err = -E2BIG;
	if (err)
		goto out;
	m->n_lines = w->n_lines;
	for (size_t i = 0; i < w->n_lines; i++) {
		m->lines[i].dmesg_us = w->lines[i]->dmesg_us;
		m->lines[i].level = w->lines[i]->level;
		text_copy(m->lines[i].text, sizeof(m->lines[i].text), w->lines[i]->text);
	}
out:
	arena_fini(&a);
	return err;
}
