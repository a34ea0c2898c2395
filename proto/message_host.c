// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages that only the collector writes, into recordings. Unpacking checks them like messages of
 * a guest, because a recording may come from an untrusted source.
 */
#include "proto/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/message_wire.h"
#include "proto/text.h"

int message_vm_info_pack(const struct message_vm_info *m, struct byte_buffer *out)
{
	WIRE(VmInfo) w = VCPUSCOPE__WIRE__VM_INFO__INIT;
	WIRE(VmThread) *threads = NULL;
	int err = -ENOMEM;

	if (m->n_threads > VS_THREADS_MAX)
		return -E2BIG;
	threads = calloc(m->n_threads + 1, sizeof(*threads));
	w.threads = calloc(m->n_threads + 1, sizeof(*w.threads));
	if (!threads || !w.threads)
		goto out;
	w.vm = m->vm;
	w.name = (char *)m->name;
	w.qemu_pid = m->qemu_pid;
	w.accelerator = (char *)m->accelerator;
	w.n_threads = m->n_threads;
	for (size_t i = 0; i < m->n_threads; i++) {
		vcpuscope__wire__vm_thread__init(&threads[i]);
		threads[i].tid = m->threads[i].tid;
		threads[i].comm = (char *)m->threads[i].comm;
		threads[i].is_vcpu = m->threads[i].is_vcpu;
		threads[i].vcpu = m->threads[i].vcpu;
		threads[i].apic_id_known = m->threads[i].apic_id_known;
		threads[i].apic_id = m->threads[i].apic_id;
		w.threads[i] = &threads[i];
	}
	err = wire_pack(&w.base, out);
out:
	free(w.threads);
	free(threads);
	return err;
}

static int vm_info_check(const WIRE(VmInfo) * w)
{
	if (w->n_threads > VS_THREADS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < w->n_threads; i++)
		if (w->threads[i]->is_vcpu && w->threads[i]->vcpu >= VS_CPUS_MAX)
			return -E2BIG;
	return 0;
}

int message_vm_info_unpack(const uint8_t *payload, size_t len, struct message_vm_info *m)
{
	struct arena a;
	WIRE(VmInfo) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__vm_info__descriptor, payload, len, &w);

	if (!err)
		err = vm_info_check(w);
	if (err)
		goto out;
	m->vm = w->vm;
	text_copy(m->name, sizeof(m->name), w->name);
	m->qemu_pid = w->qemu_pid;
	text_copy(m->accelerator, sizeof(m->accelerator), w->accelerator);
	m->n_threads = w->n_threads;
	for (size_t i = 0; i < w->n_threads; i++) {
		m->threads[i].tid = w->threads[i]->tid;
		text_copy(m->threads[i].comm, sizeof(m->threads[i].comm), w->threads[i]->comm);
		m->threads[i].is_vcpu = w->threads[i]->is_vcpu;
		m->threads[i].vcpu = w->threads[i]->vcpu;
		m->threads[i].apic_id_known = w->threads[i]->apic_id_known;
		m->threads[i].apic_id = w->threads[i]->apic_id;
	}
out:
	arena_fini(&a);
	return err;
}

int message_echo_observation_pack(const struct message_echo_observation *m, struct byte_buffer *out)
{
	WIRE(EchoObservation) w = VCPUSCOPE__WIRE__ECHO_OBSERVATION__INIT;

	w.vm = m->vm;
	w.host_sent = m->host_sent;
	w.guest_received = m->guest_received;
	w.guest_sent = m->guest_sent;
	w.host_received = m->host_received;
	return wire_pack(&w.base, out);
}

int message_echo_observation_unpack(const uint8_t *payload, size_t len,
				    struct message_echo_observation *m)
{
	struct arena a;
	WIRE(EchoObservation) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__echo_observation__descriptor, payload, len, &w);

	if (!err) {
		m->vm = w->vm;
		m->host_sent = w->host_sent;
		m->guest_received = w->guest_received;
		m->guest_sent = w->guest_sent;
		m->host_received = w->host_received;
	}
	arena_fini(&a);
	return err;
}

int message_stack_pack(const struct message_stack *m, struct byte_buffer *out)
{
	WIRE(Stack) w = VCPUSCOPE__WIRE__STACK__INIT;
	WIRE(StackFrame) frames[VS_STACK_FRAMES_MAX], *list[VS_STACK_FRAMES_MAX];

	if (m->n_frames > VS_STACK_FRAMES_MAX)
		return -E2BIG;
	for (size_t i = 0; i < m->n_frames; i++) {
		vcpuscope__wire__stack_frame__init(&frames[i]);
		frames[i].symbol = (char *)m->frames[i].symbol;
		frames[i].module = (char *)m->frames[i].module;
		frames[i].offset = m->frames[i].offset;
		frames[i].kernel = m->frames[i].kernel;
		list[i] = &frames[i];
	}
	w.id = m->id;
	w.pid = m->pid;
	w.n_frames = m->n_frames;
	w.frames = list;
	return wire_pack(&w.base, out);
}

int message_stack_unpack(const uint8_t *payload, size_t len, struct message_stack *m)
{
	struct arena a;
	WIRE(Stack) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__stack__descriptor, payload, len, &w);

	if (!err && w->n_frames > VS_STACK_FRAMES_MAX)
		err = -E2BIG;
	if (err)
		goto out;
	m->id = w->id;
	m->pid = w->pid;
	m->n_frames = w->n_frames;
	for (size_t i = 0; i < w->n_frames; i++) {
		struct message_stack_frame *frame = &m->frames[i];

		text_copy(frame->symbol, sizeof(frame->symbol), w->frames[i]->symbol);
		text_copy(frame->module, sizeof(frame->module), w->frames[i]->module);
		frame->offset = w->frames[i]->offset;
		frame->kernel = w->frames[i]->kernel;
	}
out:
	arena_fini(&a);
	return err;
}

int message_note_pack(const struct message_note *m, struct byte_buffer *out)
{
	WIRE(Note) w = VCPUSCOPE__WIRE__NOTE__INIT;

	w.vm = m->vm;
	w.kind = m->kind;
	w.host_tsc = m->host_tsc;
	w.text = (char *)m->text;
	return wire_pack(&w.base, out);
}

int message_note_unpack(const uint8_t *payload, size_t len, struct message_note *m)
{
	struct arena a;
	WIRE(Note) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__note__descriptor, payload, len, &w);

	if (!err && (w->kind < NOTE_CHANNEL_UP || w->kind > NOTE_KIND_LAST))
		err = -EBADMSG;
	if (err)
		goto out;
	m->vm = w->vm;
	m->kind = w->kind;
	m->host_tsc = w->host_tsc;
	text_copy(m->text, sizeof(m->text), w->text);
out:
	arena_fini(&a);
	return err;
}

int message_vm_clock_pack(const struct message_vm_clock *m, struct byte_buffer *out)
{
	WIRE(VmClock) w = VCPUSCOPE__WIRE__VM_CLOCK__INIT;
	WIRE(VmClockTsc) tsc = VCPUSCOPE__WIRE__VM_CLOCK_TSC__INIT;
	WIRE(VmClockPvclock) pvclock = VCPUSCOPE__WIRE__VM_CLOCK_PVCLOCK__INIT;
	WIRE(VmClockMaster) master = VCPUSCOPE__WIRE__VM_CLOCK_MASTER__INIT;

	w.vm = m->vm;
	w.vcpu = m->vcpu;
	w.source = m->source;
	w.from_min = m->from_min;
	w.from_max = m->from_max;
	tsc.offset = m->tsc.offset;
	tsc.ratio = m->tsc.ratio;
	tsc.frac_bits = m->tsc.frac_bits;
	tsc.scaling_known = m->tsc.scaling_known;
	wire_pvclock_fill(&pvclock, &m->pvclock);
	master.used = m->master.used;
	master.offsets_matched = m->master.offsets_matched;
	w.tsc = m->tsc.known ? &tsc : NULL;
	w.pvclock = m->pvclock.known ? &pvclock : NULL;
	w.master = m->master.known ? &master : NULL;
	return wire_pack(&w.base, out);
}

/* Whoever converts by these parameters relies on what is checked here. */
static bool vm_clock_valid(const WIRE(VmClock) * w)
{
	struct message_vm_clock_pvclock unused;

	if (w->source < VM_CLOCK_PVCLOCK_UPDATE || w->source > VM_CLOCK_SOURCE_LAST)
		return false;
	if (w->from_min > w->from_max || w->vcpu > INT32_MAX)
		return false;
	if (w->tsc && (w->tsc->frac_bits > 63 || (w->tsc->frac_bits && !w->tsc->ratio)))
		return false;
	if (w->pvclock && !wire_pvclock_read(w->pvclock, &unused))
		return false;
	return w->tsc || w->pvclock || w->master;
}

int message_vm_clock_unpack(const uint8_t *payload, size_t len, struct message_vm_clock *m)
{
	struct arena a;
	WIRE(VmClock) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__vm_clock__descriptor, payload, len, &w);

	if (!err && !vm_clock_valid(w))
		err = -EBADMSG;
	if (err)
		goto out;
	memset(m, 0, sizeof(*m));
	m->vm = w->vm;
	m->vcpu = w->vcpu;
	m->source = w->source;
	m->from_min = w->from_min;
	m->from_max = w->from_max;
	if (w->tsc) {
		m->tsc.known = true;
		m->tsc.scaling_known = w->tsc->scaling_known;
		m->tsc.frac_bits = w->tsc->frac_bits;
		m->tsc.offset = w->tsc->offset;
		m->tsc.ratio = w->tsc->ratio;
	}
	if (w->pvclock)
		wire_pvclock_read(w->pvclock, &m->pvclock);
	if (w->master) {
		m->master.known = true;
		m->master.used = w->master->used;
		m->master.offsets_matched = w->master->offsets_matched;
	}
out:
	arena_fini(&a);
	return err;
}

int message_cpu_quota_pack(const struct message_cpu_quota *m, struct byte_buffer *out)
{
	WIRE(CpuQuota) w = VCPUSCOPE__WIRE__CPU_QUOTA__INIT;

	if (m->n_vcpus > VS_CPUS_MAX)
		return -E2BIG;
	w.vm = m->vm;
	w.n_vcpu = m->n_vcpus;
	w.vcpu = (uint32_t *)m->vcpus;
	w.from = m->from;
	w.until = m->until;
	w.throttled_ns = m->throttled_ns;
	w.periods = m->periods;
	w.quota_us = m->quota_us;
	w.period_us = m->period_us;
	w.cgroup = (char *)m->cgroup;
	return wire_pack(&w.base, out);
}

int message_cpu_quota_unpack(const uint8_t *payload, size_t len, struct message_cpu_quota *m)
{
	struct arena a;
	WIRE(CpuQuota) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__cpu_quota__descriptor, payload, len, &w);

	if (!err && w->n_vcpu > VS_CPUS_MAX)
		err = -E2BIG;
	if (!err && w->from > w->until)
		err = -EBADMSG;
	if (err)
		goto out;
	m->vm = w->vm;
	m->n_vcpus = w->n_vcpu;
	for (size_t i = 0; i < w->n_vcpu; i++)
		m->vcpus[i] = w->vcpu[i];
	m->from = w->from;
	m->until = w->until;
	m->throttled_ns = w->throttled_ns;
	m->periods = w->periods;
	m->quota_us = w->quota_us;
	m->period_us = w->period_us;
	text_copy(m->cgroup, sizeof(m->cgroup), w->cgroup);
out:
	arena_fini(&a);
	return err;
}

int message_task_origins_pack(const struct message_task_origins *m, struct byte_buffer *out)
{
	WIRE(TaskOrigins) w = VCPUSCOPE__WIRE__TASK_ORIGINS__INIT;
	WIRE(TaskOrigin) tasks[VS_TASK_ORIGINS_MAX], *list[VS_TASK_ORIGINS_MAX];

	if (m->n > VS_TASK_ORIGINS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < m->n; i++) {
		const struct message_task_origin *from = &m->tasks[i];

		vcpuscope__wire__task_origin__init(&tasks[i]);
		tasks[i].tid = from->tid;
		tasks[i].tgid = from->tgid;
		tasks[i].seen = from->seen;
		tasks[i].began = from->began;
		tasks[i].cgroup = (char *)from->cgroup;
		tasks[i].vm = (char *)from->vm;
		tasks[i].vcpu_known = from->vcpu_known;
		tasks[i].vcpu = from->vcpu;
		tasks[i].claimed = from->claimed;
		tasks[i].uid = from->uid;
		list[i] = &tasks[i];
	}
	w.n_tasks = m->n;
	w.tasks = list;
	return wire_pack(&w.base, out);
}

static int task_origins_check(const WIRE(TaskOrigins) * w)
{
	if (w->n_tasks > VS_TASK_ORIGINS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < w->n_tasks; i++) {
		const WIRE(TaskOrigin) *t = w->tasks[i];

		if (t->tid <= 0 || t->tgid <= 0 || t->began > t->seen)
			return -EBADMSG;
		if (t->vcpu_known && t->vcpu >= VS_CPUS_MAX)
			return -E2BIG;
	}
	return 0;
}

int message_task_origins_unpack(const uint8_t *payload, size_t len, struct message_task_origins *m)
{
	struct arena a;
	WIRE(TaskOrigins) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__task_origins__descriptor, payload, len, &w);

	if (!err)
		err = task_origins_check(w);
	if (err)
		goto out;
	m->n = w->n_tasks;
	for (size_t i = 0; i < w->n_tasks; i++) {
		struct message_task_origin *to = &m->tasks[i];

		*to = (struct message_task_origin){.tid = w->tasks[i]->tid,
						   .tgid = w->tasks[i]->tgid,
						   .seen = w->tasks[i]->seen,
						   .began = w->tasks[i]->began,
						   .vcpu_known = w->tasks[i]->vcpu_known,
						   .vcpu = w->tasks[i]->vcpu,
						   .claimed = w->tasks[i]->claimed,
						   .uid = w->tasks[i]->uid};
		text_copy(to->cgroup, sizeof(to->cgroup), w->tasks[i]->cgroup);
		text_copy(to->vm, sizeof(to->vm), w->tasks[i]->vm);
	}
out:
	arena_fini(&a);
	return err;
}

int message_recording_end_pack(const struct message_recording_end *m, struct byte_buffer *out)
{
	WIRE(RecordingEnd) w = VCPUSCOPE__WIRE__RECORDING_END__INIT;

	if (m->n_checkpoints > VS_CHECKPOINTS_MAX)
		return -E2BIG;
	w.entries = m->entries;
	w.host_dropped = m->host_dropped;
	w.n_checkpoint_offset = m->n_checkpoints;
	w.checkpoint_offset = m->checkpoints;
	return wire_pack(&w.base, out);
}

int message_recording_end_unpack(const uint8_t *payload, size_t len,
				 struct message_recording_end *m)
{
	struct arena a;
	WIRE(RecordingEnd) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__recording_end__descriptor, payload, len, &w);

	*m = (struct message_recording_end){0};
	if (!err && w->n_checkpoint_offset > VS_CHECKPOINTS_MAX)
		err = -E2BIG;
	if (err)
		goto out;
	m->entries = w->entries;
	m->host_dropped = w->host_dropped;
	if (!w->n_checkpoint_offset)
		goto out;
	m->checkpoints = malloc(w->n_checkpoint_offset * sizeof(*m->checkpoints));
	if (!m->checkpoints) {
		err = -ENOMEM;
		goto out;
	}
	m->n_checkpoints = w->n_checkpoint_offset;
	memcpy(m->checkpoints, w->checkpoint_offset, m->n_checkpoints * sizeof(*m->checkpoints));
out:
	arena_fini(&a);
	return err;
}
