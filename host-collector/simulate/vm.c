// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/vm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_PID = 4100, /* of the first VM, and of the second */
	SECOND_PID = 10100,
	PIDS = 100, /* of each VM */
	VCPU_TIDS = 10,
	VHOST_TID = 50,
	ECHO_FAST_NS = 50000000,
	ECHO_SLOW_NS = 200000000,
	ECHO_PATIENCE_NS = 1000000000,
	AGENT_HEARTBEATS = 4, /* every so many drains */
};

/* ---- the channel ---- */

static void parcel_arrives(void *object, uint64_t argument)
{
	struct sim_vm *vm = object;
	struct vm_parcel *p = vm->parcels;

	(void)argument;
	if (!p)
		return;
	if (vm->engine->now < vm->channel_blocked_until) {
		engine_at(vm->engine, vm->channel_blocked_until, parcel_arrives, vm, 0);
		return;
	}
	vm->parcels = p->next;
	if (!vm->parcels)
		vm->parcels_end = &vm->parcels;
	world_entry(vm->world, vm->id, p->frame, p->len);
	free(p);
}

/* The ways there and back differ, and some frames are slow. */
static int64_t return_delay_ns(struct engine *e)
{
	return engine_between(e, 60000, 250000) +
	       (engine_chance(e, 0.05) ? engine_between(e, 0, 3000000) : 0);
}

static int64_t there_delay_ns(struct engine *e)
{
	return engine_between(e, 25000, 90000) +
	       (engine_chance(e, 0.05) ? engine_between(e, 0, 1000000) : 0);
}

static void guest_frame(void *context, uint32_t source, const uint8_t *frame, size_t len)
{
	struct sim_vm *vm = context;
	struct vm_parcel *p = malloc(sizeof(*p) + len);
	int64_t arrival = vm->engine->now + return_delay_ns(vm->engine);

	(void)source;
	if (!p) {
		vm->engine->error = -ENOMEM;
		return;
	}
	p->next = NULL;
	p->len = len;
	memcpy(p->frame, frame, len);
	*vm->parcels_end = p;
	vm->parcels_end = &p->next;
	if (arrival < vm->last_arrival)
		arrival = vm->last_arrival;
	vm->last_arrival = arrival;
	engine_at(vm->engine, arrival, parcel_arrives, vm, 0);
}

/* ---- echoes ---- */

struct echo_reply {
	struct sim_vm *vm;
	struct message_echo_observation observation;
};

static void echo_home(void *object, uint64_t argument)
{
	struct echo_reply *r = object;
	struct sim_vm *vm = r->vm;
	struct sim_capture *c = &vm->world->host_capture;

	(void)argument;
	if (vm->engine->now < vm->channel_blocked_until) {
		engine_at(vm->engine, vm->channel_blocked_until, echo_home, r, 0);
		return;
	}
	r->observation.host_received = sim_clock_tsc(&vm->world->host_clock, vm->engine->now);
	sim_capture_message(c, FRAME_ECHO_OBSERVATION,
			    message_echo_observation_pack(&r->observation, &c->payload));
	free(r);
}

static void echo_arrives(void *object, uint64_t argument)
{
	struct sim_vm *vm = object;

	(void)argument;
	if (vm->engine->now < vm->channel_blocked_until)
		engine_at(vm->engine, vm->channel_blocked_until, echo_arrives, vm, 0);
	else
		guest_task_due(vm->agent, GUEST_DEVICE);
}

static void echo_send(void *object, uint64_t argument)
{
	struct sim_vm *vm = object;
	struct engine *e = vm->engine;

	(void)argument;
	engine_at(e, e->now + (e->now < 2000000000 ? ECHO_FAST_NS : ECHO_SLOW_NS), echo_send, vm,
		  0);
	if (vm->echo_waits && e->now - vm->echo_sent < ECHO_PATIENCE_NS)
		return;
	vm->echo_waits = true;
	vm->echo_sent = e->now;
	engine_at(e, e->now + there_delay_ns(e), echo_arrives, vm, 0);
}

static void guest_heartbeat(struct sim_vm *vm)
{
	sim_capture_heartbeat(&vm->guest_capture);
	truth_clock_reading(&vm->truth);
}

/* The agent's turn is over: it has drained its buffers and answered. */
static void agent_done(void *context)
{
	struct sim_vm *vm = context;
	struct engine *e = vm->engine;
	struct echo_reply *r;

	if (vm->agent_gone) {
		vm->echo_waits = false;
		return;
	}
	sim_capture_drain(&vm->guest_capture);
	if (vm->heartbeats++ % AGENT_HEARTBEATS == 0)
		guest_heartbeat(vm);
	if (!vm->echo_waits)
		return;
	vm->echo_waits = false;
	r = calloc(1, sizeof(*r));
	if (!r) {
		e->error = -ENOMEM;
		return;
	}
	r->vm = vm;
	r->observation = (struct message_echo_observation){
		.vm = vm->id,
		.host_sent = sim_clock_tsc(&vm->world->host_clock, vm->echo_sent),
		.guest_received = sim_clock_tsc(&vm->guest_clock, e->now) + vm->echo_lie_ticks,
		.guest_sent = sim_clock_tsc(&vm->guest_clock, e->now) + vm->echo_lie_ticks,
	};
	engine_at(e, e->now + return_delay_ns(e), echo_home, r, 0);
}

/* ---- what the collector says of it ---- */

/* As the collector reads the cgroup's counters. */
void sim_vm_quota_emit(struct sim_vm *vm)
{
	struct sim_capture *c = &vm->world->host_capture;
	struct message_cpu_quota *m;

	if (!vm->quota.set)
		return;
	m = calloc(1, sizeof(*m));
	if (!m) {
		vm->engine->error = -ENOMEM;
		return;
	}
	m->vm = vm->id;
	m->from = sim_clock_tsc(&vm->world->host_clock, vm->quota.read);
	vm->quota.read = vm->engine->now;
	m->until = sim_clock_tsc(&vm->world->host_clock, vm->quota.read);
	m->n_vcpus = vm->n_vcpus;
	for (uint32_t i = 0; i < vm->n_vcpus; i++)
		m->vcpus[i] = i;
	m->throttled_ns = (uint64_t)(vm->quota.throttled_ns - vm->quota.reported_ns);
	m->periods = m->throttled_ns != 0;
	vm->quota.reported_ns = vm->quota.throttled_ns;
	m->quota_us = 100000;
	m->period_us = 1000000;
	snprintf(m->cgroup, sizeof(m->cgroup), "/%s", vm->name);
	sim_capture_message(c, FRAME_CPU_QUOTA, message_cpu_quota_pack(m, &c->payload));
	free(m);
}

void sim_vm_note(struct sim_vm *vm, enum note_kind kind, const char *text)
{
	struct sim_capture *c = &vm->world->host_capture;
	struct message_note m = {.vm = vm->id, .kind = kind};

	m.host_tsc = sim_clock_tsc(&vm->world->host_clock, vm->engine->now);
	snprintf(m.text, sizeof(m.text), "%s", text);
	sim_capture_message(c, FRAME_NOTE, message_note_pack(&m, &c->payload));
}

void sim_vm_clock_emit(struct sim_vm *vm)
{
	const enum vm_protection protection = vm->world->options.protection;
	struct sim_capture *c = &vm->world->host_capture;

	for (uint32_t i = 0; vm->world->shows_clock && i < vm->n_vcpus; i++) {
		uint64_t now = sim_clock_tsc(&vm->world->host_clock, vm->engine->now);
		struct message_vm_clock m = {
			.vm = vm->id,
			.vcpu = i,
			.source = VM_CLOCK_VCPU,
			.from_min = vm->engine->now ? now : 0,
			.from_max = now,
			.tsc = {.known = true,
				.scaling_known = true,
				.offset = sim_clock_tsc(&vm->guest_clock, vm->engine->now) - now},
		};

		if (protection == VM_PROTECTION_SEV_SNP || protection == VM_PROTECTION_TDX)
			m.tsc.offset = 0;
		sim_capture_message(c, FRAME_VM_CLOCK, message_vm_clock_pack(&m, &c->payload));
	}
}

void sim_vm_info_emit(struct sim_vm *vm)
{
	struct sim_capture *c = &vm->world->host_capture;
	struct message_vm_info *m = calloc(1, sizeof(*m));

	if (!m) {
		vm->engine->error = -ENOMEM;
		return;
	}
	m->vm = vm->id;
	snprintf(m->name, sizeof(m->name), "%s", vm->name);
	snprintf(m->accelerator, sizeof(m->accelerator), "kvm");
	m->qemu_pid = vm->pid;
	m->protection = vm->world->options.protection;
	m->threads[m->n_threads++] =
		(struct message_vm_thread){.tid = vm->pid, .comm = "qemu-system-x86"};
	for (uint32_t i = 0; i < vm->n_vcpus; i++) {
		struct message_vm_thread *t = &m->threads[m->n_threads++];

		*t = (struct message_vm_thread){.tid = vm->pid + VCPU_TIDS + (int32_t)i,
						.is_vcpu = true,
						.vcpu = i,
						.apic_id_known = true,
						.apic_id = i};
		snprintf(t->comm, sizeof(t->comm), "CPU %u/KVM", i % WORLD_VCPUS_MAX);
	}
	sim_capture_message(c, FRAME_VM_INFO, message_vm_info_pack(m, &c->payload));
	free(m);
}

/* ---- making it ---- */

int sim_vm_init(struct sim_vm *vm, struct world *w, uint32_t index, uint32_t n_vcpus)
{
	vm->world = w;
	vm->engine = &w->engine;
	vm->id = index + 1;
	vm->n_vcpus = n_vcpus;
	vm->pid = index ? SECOND_PID + (int32_t)(index - 1) * PIDS : FIRST_PID;
	snprintf(vm->name, sizeof(vm->name), index ? "simulated-%u" : "simulated", vm->id);
	vm->parcels_end = &vm->parcels;
	truth_init(&vm->truth, vm->engine, n_vcpus);
	vm->target = (uint32_t)engine_between(vm->engine, 0, n_vcpus - 1);
	vm->vcpus = calloc(n_vcpus, sizeof(*vm->vcpus));
	vm->guests = calloc(n_vcpus, sizeof(*vm->guests));
	return vm->vcpus && vm->guests ? 0 : -ENOMEM;
}

void sim_vm_fini(struct sim_vm *vm)
{
	while (vm->parcels) {
		struct vm_parcel *p = vm->parcels;

		vm->parcels = p->next;
		free(p);
	}
	sim_capture_fini(&vm->guest_capture);
	truth_fini(&vm->truth);
	free(vm->vcpus);
	free(vm->guests);
}

/* Echoes still on their way own their memory. */
void sim_vm_action_fini(const struct engine_entry *planned)
{
	if (planned->action == echo_home)
		free(planned->object);
}

void sim_vm_clock_draw(struct sim_vm *vm)
{
	struct engine *e = vm->engine;

	vm->guest_clock = vm->world->host_clock;
	vm->guest_clock.tsc0 += engine_random(e) >> 20; /* tsc_offset */
	vm->guest_clock.monotonic0 = 100000000000;
	vm->guest_clock.raw0 = 100000000000;
	vm->guest_clock.monotonic_ppb = engine_between(e, -20000, 20000);
}

int sim_vm_capture_init(struct sim_vm *vm)
{
	const struct sim_capture_options o = {.engine = vm->engine,
					      .clock = vm->guest_clock,
					      .source = vm->id,
					      .n_cpus = vm->n_vcpus,
					      .loss = vm->world->options.loss,
					      .frame = guest_frame,
					      .context = vm};

	return sim_capture_init(&vm->guest_capture, &o);
}

void sim_vm_echo_start(struct sim_vm *vm)
{
	engine_at(vm->engine, 1000000, echo_send, vm, 0);
}

void sim_vm_close(struct sim_vm *vm)
{
	if (!vm->agent_gone) {
		sim_capture_drain(&vm->guest_capture);
		sim_capture_heartbeat(&vm->guest_capture);
	}
	while (vm->parcels)
		parcel_arrives(vm, 0);
}

static void interrupts_raise(void *context)
{
	struct sim_vm *vm = context;

	for (uint32_t i = 0; i < vm->n_vcpus; i++)
		apic_worker(&vm->vcpus[i].apic);
}

void sim_vm_threads_init(struct sim_vm *vm)
{
	struct host *h = &vm->world->host;
	uint16_t after = (uint16_t)(h->n_cpus - WORLD_SPARE_CPUS);
	char worker[16];

	vm->qemu = host_thread_new(h, vm->pid, vm->pid, "qemu-system-x86", after);
	vm->qemu->followed = true;
	host_thread_works(vm->qemu, 20000, 120000, 10000000, 80000000);
	snprintf(worker, sizeof(worker), "vhost-%d", vm->pid);
	vm->vhost = host_thread_new(h, vm->pid + VHOST_TID, vm->pid + VHOST_TID, worker,
				    (uint16_t)(after + 1));
	vm->vhost->urgency = HOST_EAGER;
	vm->vhost->done = interrupts_raise;
	vm->vhost->context = vm;
	host_thread_works(vm->vhost, 2000, 9000, 0, 0);
}

static void load_init(struct sim_vm *vm, struct guest_cpu_sim *g)
{
	enum world_load load = vm->world->options.load;

	if (load == LOAD_ANY)
		load = (enum world_load)engine_between(vm->engine, LOAD_ALONE, LOAD_SERVER);
	if (load == LOAD_ALONE || load == LOAD_SHARED || load == LOAD_PAIR)
		guest_task_new(g, 700, "compute", 0, 0, 1000000, 2000000);
	if (load == LOAD_SHARED || load == LOAD_PAIR)
		guest_task_new(g, 701, "batch", 40000000, 90000000, 100000, 3000000);
	if (load == LOAD_SERVER) {
		guest_task_new(g, 710, "server", 800000, 6000000, 200000, 2500000);
		guest_task_new(g, 711, "worker", 2000000, 9000000, 500000, 4000000);
	}
	if (load == LOAD_STEADY) {
		struct guest_task *t =
			guest_task_new(g, 730, "requests", 20000, 120000, 200000, 600000);

		t->device_share = 0.5;
		guest_task_new(g, 731, "batch", 100000, 2000000, 1000000, 6000000);
	}
	if (load == LOAD_SHARED || load == LOAD_SERVER) {
		struct guest_task *t =
			guest_task_new(g, 40, "kworker/u4:2", 20000, 150000, 15000000, 90000000);

		t->eager = true;
	}
}

/* Its devices have something for every guest CPU now and then. */
static void traffic(void *object, uint64_t argument)
{
	struct guest_cpu_sim *g = object;

	(void)argument;
	guest_sim_interrupt(g, GUEST_DEVICE);
	engine_at(g->engine, g->engine->now + engine_between(g->engine, 5000000, 60000000), traffic,
		  g, 0);
}

void sim_vm_guest_init(struct sim_vm *vm)
{
	uint32_t agent_cpu = (uint32_t)engine_between(vm->engine, 0, vm->n_vcpus - 1);

	if (vm->world->options.load == LOAD_PAIR)
		agent_cpu = (vm->target + 1) % vm->n_vcpus;
	for (uint32_t i = 0; i < vm->n_vcpus; i++) {
		struct guest_cpu_sim *g = &vm->guests[i];
		struct host_thread *thread;
		char comm[16];

		snprintf(comm, sizeof(comm), "CPU %u/KVM", i % WORLD_VCPUS_MAX);
		thread = host_thread_new(&vm->world->host, vm->pid + VCPU_TIDS + (int32_t)i,
					 vm->pid, comm, (uint16_t)((vm->id - 1) * vm->n_vcpus + i));
		guest_sim_init(g, vm->engine, &vm->world->pace, &vm->guest_capture, &vm->truth,
			       &vm->vcpus[i], (uint16_t)i);
		vcpu_sim_init(&vm->vcpus[i], thread, g, &vm->truth, vm->world->kvm_events);
		vm->vcpus[i].index = i;
		vm->vcpus[i].apic.worker = vm->world->interrupts ? vm->vhost : NULL;
		vm->vcpus[i].apic.posted = vm->world->posted;
		vm->vcpus[i].apic.shown = vm->world->interrupts;
		if (i == vm->target) {
			load_init(vm, g);
		} else {
			guest_task_new(g, 720, "cron", 50000, 900000, 10000000, 60000000);
			guest_task_new(g, 721, "logger", 20000, 300000, 5000000, 50000000);
		}
		truth_phase(&vm->truth, i, SIM_STATE_HALTED, SIM_CAUSE_NONE, 0);
		host_wake(thread, NULL);
		if (vm->world->interrupts)
			engine_at(vm->engine, engine_between(vm->engine, 0, 60000000), traffic, g,
				  0);
	}
	vm->agent = guest_task_new(&vm->guests[agent_cpu], 350, "vcpuscope-agent", 60000, 250000,
				   50000000, 51000000);
	vm->agent->eager = true;
	vm->agent->device_share = 1;
	vm->agent->done = agent_done;
	vm->agent->context = vm;
}
