/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/bench/busy_scene.h"

#include <stdlib.h>

#include "proto/recording.h"

enum {
	HOG = 3000,
	PING = 500,
	PONG = 600,
	TIMER_VECTOR = 236,
	DEVICE_VECTOR = 34,
	DEVICE_IRQ = 24,
	RESCHEDULE_VECTOR = 253,
	PRIO = 120,
};

/* Exit reasons of VMX that are common under load. */
enum {
	EXIT_EXTERNAL_INTERRUPT = 1,
	EXIT_HLT = 12,
	EXIT_IO = 30,
	EXIT_MSR_WRITE = 32,
	EXIT_EPT_VIOLATION = 48,
};

struct scene {
	struct timeline_event *events;
	size_t n, max;
	int64_t t; /* time of the vCPU whose turn it is */
	uint16_t cpu;
	int32_t task; /* the guest's task on this vCPU */
	uint64_t random;
};

static int64_t jitter(struct scene *s, int64_t ns)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return ns / 2 + (int64_t)(s->random % (uint64_t)ns);
}

static void event(struct scene *s, uint32_t source, struct vs_event e)
{
	s->t += jitter(s, 600);
	if (s->n == s->max)
		return;
	e.cpu = s->cpu;
	s->events[s->n] = (struct timeline_event){.t = {s->t},
						  .err_ns = source == VS_SOURCE_HOST ? 0 : 50,
						  .source = source,
						  .event = e};
	s->n++;
}

static int32_t thread(const struct scene *s)
{
	return SYNTH_QEMU_PID + 1 + s->cpu;
}

/* An event in the vCPU's own thread. */
static void host(struct scene *s, enum vs_event_type type, uint64_t arg0, uint64_t arg1)
{
	event(s, VS_SOURCE_HOST,
	      (struct vs_event){
		      .type = (vs_u16)type, .pid = thread(s), .arg0 = arg0, .arg1 = arg1});
}

static void guest(struct scene *s, enum vs_event_type type, uint64_t arg0, uint64_t arg1)
{
	event(s, SYNTH_VM,
	      (struct vs_event){.type = (vs_u16)type, .pid = s->task, .arg0 = arg0, .arg1 = arg1});
}

static void guest_switch(struct scene *s, uint32_t state, int32_t to)
{
	event(s, SYNTH_VM, synth_switch(s->task, state, to));
	s->task = to;
}

static void host_switch(struct scene *s, int32_t out, uint32_t state, int32_t in)
{
	event(s, VS_SOURCE_HOST, synth_switch(out, state, in));
}

static void vm_exit(struct scene *s, uint64_t reason)
{
	host(s, VS_EVENT_KVM_EXIT, reason | 1ull << 32, 0xffffffff81000000 + reason);
}

static void vm_entry(struct scene *s)
{
	host(s, VS_EVENT_KVM_ENTRY, 0, 0xffffffff81000000);
}

static void accept(struct scene *s, uint64_t vector)
{
	host(s, VS_EVENT_KVM_ACCEPT_IRQ, vector | (uint64_t)s->cpu << 32, 0);
}

static void softirq(struct scene *s, uint64_t number)
{
	guest(s, VS_EVENT_SOFTIRQ_ENTRY, number, 0);
	guest(s, VS_EVENT_SOFTIRQ_EXIT, number, 0);
}

/* The accepted interrupt causes a VM-exit, and KVM injects it at the next VM-entry. */
static void inject(struct scene *s, uint64_t vector)
{
	vm_exit(s, EXIT_EXTERNAL_INTERRUPT);
	host(s, VS_EVENT_KVM_INJECT, vector, 0);
	vm_entry(s);
}

static void handover(struct scene *s)
{
	int32_t to = (s->task >= PONG ? PING : PONG) + s->cpu;

	event(s, SYNTH_VM, synth_wakeup(to, s->task, s->cpu));
	guest_switch(s, VS_TASK_INTERRUPTIBLE, to);
}

static void device(struct scene *s)
{
	host(s, VS_EVENT_KVM_MSI, 0xfee00000 | (uint64_t)s->cpu << 12, DEVICE_VECTOR);
	accept(s, DEVICE_VECTOR);
	inject(s, DEVICE_VECTOR);
	guest(s, VS_EVENT_IRQ_ENTRY, DEVICE_IRQ, 0);
	guest(s, VS_EVENT_IRQ_EXIT, DEVICE_IRQ, 1);
	host(s, VS_EVENT_KVM_EOI, s->cpu, DEVICE_VECTOR);
	softirq(s, 3);
}

static void reschedule(struct scene *s)
{
	host(s, VS_EVENT_KVM_IPI, RESCHEDULE_VECTOR, s->cpu);
	accept(s, RESCHEDULE_VECTOR);
	inject(s, RESCHEDULE_VECTOR);
	guest(s, VS_EVENT_VECTOR_ENTRY, VS_VECTOR_RESCHEDULE, RESCHEDULE_VECTOR);
	guest(s, VS_EVENT_VECTOR_EXIT, VS_VECTOR_RESCHEDULE, RESCHEDULE_VECTOR);
	host(s, VS_EVENT_KVM_EOI, s->cpu, RESCHEDULE_VECTOR);
}

static void msr(struct scene *s)
{
	vm_exit(s, EXIT_MSR_WRITE);
	host(s, VS_EVENT_KVM_MSR, 0x6e0 | 1ull << 32, (uint64_t)s->t);
	vm_entry(s);
}

static void page_fault(struct scene *s)
{
	vm_exit(s, EXIT_EPT_VIOLATION);
	host(s, VS_EVENT_KVM_PAGE_FAULT, 0x10000000 + (s->random & 0xff) * 4096, 0x181);
	vm_entry(s);
}

static void io(struct scene *s)
{
	vm_exit(s, EXIT_IO);
	host(s, VS_EVENT_KVM_PIO, 0xc000 | 2ull << 32, 1 | 1ull << 32);
	host(s, VS_EVENT_KVM_USERSPACE_EXIT, 2, 0);
	s->t += jitter(s, 8000);
	vm_entry(s);
}

/* The vCPU halts until its timer ends. */
static void halt(struct scene *s)
{
	int32_t was = s->task;

	guest_switch(s, VS_TASK_INTERRUPTIBLE, 0);
	vm_exit(s, EXIT_HLT);
	host_switch(s, thread(s), VS_TASK_INTERRUPTIBLE, 0);
	s->t += jitter(s, 40000);
	event(s, VS_SOURCE_HOST, synth_wakeup(thread(s), 0, s->cpu));
	host_switch(s, 0, 0, thread(s));
	host(s, VS_EVENT_KVM_WAKEUP, 40000, 1);
	accept(s, TIMER_VECTOR);
	host(s, VS_EVENT_KVM_INJECT, TIMER_VECTOR, 0);
	vm_entry(s);
	guest(s, VS_EVENT_VECTOR_ENTRY, VS_VECTOR_LOCAL_TIMER, TIMER_VECTOR);
	guest(s, VS_EVENT_VECTOR_EXIT, VS_VECTOR_LOCAL_TIMER, TIMER_VECTOR);
	host(s, VS_EVENT_KVM_EOI, s->cpu, TIMER_VECTOR);
	softirq(s, 1);
	event(s, SYNTH_VM, synth_wakeup(was, 0, s->cpu));
	guest_switch(s, 0, was);
}

static void hog(struct scene *s)
{
	vm_exit(s, EXIT_EXTERNAL_INTERRUPT);
	host_switch(s, thread(s), 0, HOG + s->cpu);
	s->t += jitter(s, 300000);
	host_switch(s, HOG + s->cpu, 0, thread(s));
	vm_entry(s);
}

static const struct {
	void (*play)(struct scene *s);
	unsigned every; /* number of turns between two of these acts */
} acts[] = {
	{handover, 1},   {device, 3},     {msr, 1}, {halt, 4},
	{reschedule, 5}, {page_fault, 9}, {io, 11}, {hog, 60},
};

static int by_time(const void *a, const void *b)
{
	const struct timeline_event *x = a, *y = b;

	return (x->t.ns > y->t.ns) - (x->t.ns < y->t.ns);
}

struct timeline_event *busy_scene_new(size_t n)
{
	struct scene s[BUSY_VCPUS];
	struct timeline_event *events = calloc(n, sizeof(*events));
	size_t each = n / BUSY_VCPUS;

	if (!events)
		return NULL;
	for (uint16_t cpu = 0; cpu < BUSY_VCPUS; cpu++) {
		s[cpu] = (struct scene){.events = events + cpu * each,
					.max = cpu + 1 < BUSY_VCPUS ? each : n - cpu * each,
					.cpu = cpu,
					.t = 1000 * cpu,
					.task = PING + cpu,
					.random = 88172645463325252u + cpu};
		vm_entry(&s[cpu]);
		for (unsigned turn = 1; s[cpu].n < s[cpu].max; turn++) {
			for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
				if (turn % acts[i].every == 0)
					acts[i].play(&s[cpu]);
		}
	}
	qsort(events, n, sizeof(*events), by_time);
	return events;
}
