// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/simulate/life.h"

enum {
	HOST_CPUS = 4,
	HOST_DRAIN_NS = 20000000,
	HOST_HEARTBEAT_NS = 100000000,
	ECHO_FAST_NS = 50000000,
	ECHO_SLOW_NS = 200000000,
	ECHO_PATIENCE_NS = 1000000000,
	AGENT_HEARTBEATS = 4, /* every so many drains */
};
static const double duplicate_share = 0.01; /* of the frames */
/* By so much do runs of the same steady load differ in each stage. */
static const double steady_jitter = 0.02;

/* ---- the recorder ---- */

static void entry_write(struct world *w, uint32_t source, const uint8_t *frame, size_t len)
{
	int copies = engine_chance(&w->engine, duplicate_share) ? 2 : 1;

	while (copies-- > 0) {
		int err = recording_writer_append(w->recording, source,
						  sim_clock_tsc(&w->host_clock, w->engine.now),
						  frame, len);

		if (err && !w->engine.error)
			w->engine.error = err;
	}
}

static void host_frame(void *context, uint32_t source, const uint8_t *frame, size_t len)
{
	entry_write(context, source, frame, len);
}

/* ---- the channel ---- */

static void parcel_arrives(void *object, uint64_t argument)
{
	struct world *w = object;
	struct world_parcel *p = w->parcels;

	(void)argument;
	if (!p)
		return;
	if (w->engine.now < w->channel_blocked_until) {
		engine_at(&w->engine, w->channel_blocked_until, parcel_arrives, w, 0);
		return;
	}
	w->parcels = p->next;
	if (!w->parcels)
		w->parcels_end = &w->parcels;
	entry_write(w, WORLD_VM, p->frame, p->len);
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
	struct world *w = context;
	struct world_parcel *p = malloc(sizeof(*p) + len);
	int64_t arrival = w->engine.now + return_delay_ns(&w->engine);

	(void)source;
	if (!p) {
		w->engine.error = -ENOMEM;
		return;
	}
	p->next = NULL;
	p->len = len;
	memcpy(p->frame, frame, len);
	*w->parcels_end = p;
	w->parcels_end = &p->next;
	if (arrival < w->last_arrival)
		arrival = w->last_arrival;
	w->last_arrival = arrival;
	engine_at(&w->engine, arrival, parcel_arrives, w, 0);
}

/* ---- echoes ---- */

struct echo_reply {
	struct world *world;
	struct message_echo_observation observation;
};

static void echo_home(void *object, uint64_t argument)
{
	struct echo_reply *r = object;
	struct world *w = r->world;
	struct sim_capture *c = &w->host_capture;

	(void)argument;
	if (w->engine.now < w->channel_blocked_until) {
		engine_at(&w->engine, w->channel_blocked_until, echo_home, r, 0);
		return;
	}
	r->observation.host_received = sim_clock_tsc(&w->host_clock, w->engine.now);
	sim_capture_message(c, FRAME_ECHO_OBSERVATION,
			    message_echo_observation_pack(&r->observation, &c->payload));
	free(r);
}

static void echo_arrives(void *object, uint64_t argument)
{
	struct world *w = object;

	(void)argument;
	if (w->engine.now < w->channel_blocked_until)
		engine_at(&w->engine, w->channel_blocked_until, echo_arrives, w, 0);
	else
		guest_task_due(w->agent, GUEST_DEVICE);
}

static void echo_send(void *object, uint64_t argument)
{
	struct world *w = object;
	struct engine *e = &w->engine;

	(void)argument;
	engine_at(e, e->now + (e->now < 2000000000 ? ECHO_FAST_NS : ECHO_SLOW_NS), echo_send, w, 0);
	if (w->echo_waits && e->now - w->echo_sent < ECHO_PATIENCE_NS)
		return;
	w->echo_waits = true;
	w->echo_sent = e->now;
	engine_at(e, e->now + there_delay_ns(e), echo_arrives, w, 0);
}

static void guest_heartbeat(struct world *w)
{
	sim_capture_heartbeat(&w->guest_capture);
	truth_clock_reading(&w->truth);
}

/* The agent's turn is over: it has drained its buffers and answered. */
static void agent_done(void *context)
{
	struct world *w = context;
	struct engine *e = &w->engine;
	struct echo_reply *r;

	if (w->agent_gone) {
		w->echo_waits = false;
		return;
	}
	sim_capture_drain(&w->guest_capture);
	if (w->heartbeats++ % AGENT_HEARTBEATS == 0)
		guest_heartbeat(w);
	if (!w->echo_waits)
		return;
	w->echo_waits = false;
	r = calloc(1, sizeof(*r));
	if (!r) {
		e->error = -ENOMEM;
		return;
	}
	r->world = w;
	r->observation = (struct message_echo_observation){
		.vm = WORLD_VM,
		.host_sent = sim_clock_tsc(&w->host_clock, w->echo_sent),
		.guest_received = sim_clock_tsc(&w->guest_clock, e->now) + w->echo_lie_ticks,
		.guest_sent = sim_clock_tsc(&w->guest_clock, e->now) + w->echo_lie_ticks,
	};
	engine_at(e, e->now + return_delay_ns(e), echo_home, r, 0);
}

/* ---- the collector ---- */

static void collector_drain(void *object, uint64_t argument)
{
	struct world *w = object;

	(void)argument;
	sim_capture_drain(&w->host_capture);
	sim_stacks_flush(&w->stacks);
	engine_at(&w->engine, w->engine.now + HOST_DRAIN_NS, collector_drain, w, 0);
}

/* As the collector reads the cgroup's counters. */
static void quota_emit(struct world *w)
{
	struct sim_capture *c = &w->host_capture;
	struct message_cpu_quota *m = calloc(1, sizeof(*m));

	if (!m) {
		w->engine.error = -ENOMEM;
		return;
	}
	m->vm = WORLD_VM;
	m->from = sim_clock_tsc(&w->host_clock, w->quota.read);
	w->quota.read = w->engine.now;
	m->until = sim_clock_tsc(&w->host_clock, w->quota.read);
	m->n_vcpus = WORLD_VCPUS;
	for (uint32_t i = 0; i < WORLD_VCPUS; i++)
		m->vcpus[i] = i;
	m->throttled_ns = (uint64_t)(w->quota.throttled_ns - w->quota.reported_ns);
	m->periods = m->throttled_ns != 0;
	w->quota.reported_ns = w->quota.throttled_ns;
	m->quota_us = 100000;
	m->period_us = 1000000;
	snprintf(m->cgroup, sizeof(m->cgroup), "/simulated");
	sim_capture_message(c, FRAME_CPU_QUOTA, message_cpu_quota_pack(m, &c->payload));
	free(m);
}

static void collector_heartbeat(void *object, uint64_t argument)
{
	struct world *w = object;

	(void)argument;
	if (w->quota.set)
		quota_emit(w);
	sim_capture_heartbeat(&w->host_capture);
	engine_at(&w->engine, w->engine.now + HOST_HEARTBEAT_NS, collector_heartbeat, w, 0);
}

void world_note(struct world *w, enum note_kind kind, const char *text)
{
	struct sim_capture *c = &w->host_capture;
	struct message_note m = {.vm = WORLD_VM, .kind = kind};

	m.host_tsc = sim_clock_tsc(&w->host_clock, w->engine.now);
	snprintf(m.text, sizeof(m.text), "%s", text);
	sim_capture_message(c, FRAME_NOTE, message_note_pack(&m, &c->payload));
}

void world_log(struct world *w, const char *text)
{
	struct sim_capture *c = &w->host_capture;
	struct message_kernel_log *m = calloc(1, sizeof(*m));

	if (!m) {
		w->engine.error = -ENOMEM;
		return;
	}
	m->n_lines = 1;
	snprintf(m->lines[0].text, sizeof(m->lines[0].text), "%s", text);
	sim_capture_message(c, FRAME_KERNEL_LOG, message_kernel_log_pack(m, &c->payload));
	free(m);
}

void world_clock_emit(struct world *w)
{
	struct sim_capture *c = &w->host_capture;

	for (uint32_t i = 0; w->shows_clock && i < WORLD_VCPUS; i++) {
		uint64_t now = sim_clock_tsc(&w->host_clock, w->engine.now);
		struct message_vm_clock m = {
			.vm = WORLD_VM,
			.vcpu = i,
			.source = VM_CLOCK_VCPU,
			.from_min = w->engine.now ? now : 0,
			.from_max = now,
			.tsc = {.known = true,
				.scaling_known = true,
				.offset = sim_clock_tsc(&w->guest_clock, w->engine.now) - now},
		};

		sim_capture_message(c, FRAME_VM_CLOCK, message_vm_clock_pack(&m, &c->payload));
	}
}

static void vm_info(struct world *w)
{
	struct sim_capture *c = &w->host_capture;
	struct message_vm_info *m = calloc(1, sizeof(*m));

	if (!m) {
		w->engine.error = -ENOMEM;
		return;
	}
	m->vm = WORLD_VM;
	snprintf(m->name, sizeof(m->name), "simulated");
	snprintf(m->accelerator, sizeof(m->accelerator), "kvm");
	m->qemu_pid = QEMU_PID;
	m->threads[m->n_threads++] =
		(struct message_vm_thread){.tid = QEMU_PID, .comm = "qemu-system-x86"};
	for (uint32_t i = 0; i < WORLD_VCPUS; i++) {
		struct message_vm_thread *t = &m->threads[m->n_threads++];

		*t = (struct message_vm_thread){.tid = FIRST_VCPU_TID + (int32_t)i,
						.is_vcpu = true,
						.vcpu = i,
						.apic_id_known = true,
						.apic_id = i};
		snprintf(t->comm, sizeof(t->comm), "CPU %u/KVM", i % WORLD_VCPUS);
	}
	sim_capture_message(c, FRAME_VM_INFO, message_vm_info_pack(m, &c->payload));
	free(m);
}

/* ---- making it ---- */

static void clocks_draw(struct world *w)
{
	struct engine *e = &w->engine;
	uint64_t hz = (uint64_t)engine_between(e, 2000000, 3500000) * 1000;

	w->host_clock = (struct sim_clock){
		.nominal_hz = hz,
		.true_hz = hz + (uint64_t)engine_between(e, 0, 40) * (hz / 1000000),
		.tsc0 = engine_random(e) >> 16,
		.monotonic0 = 500000000000,
		.raw0 = 499000000000,
		.realtime0 = 1700000000000000000,
		.monotonic_ppb = engine_between(e, -20000, 20000),
	};
	w->guest_clock = w->host_clock;
	w->guest_clock.tsc0 += engine_random(e) >> 20; /* tsc_offset */
	w->guest_clock.monotonic0 = 100000000000;
	w->guest_clock.raw0 = 100000000000;
	w->guest_clock.monotonic_ppb = engine_between(e, -20000, 20000);
}

static int captures_init(struct world *w)
{
	struct sim_capture_options o = {.engine = &w->engine,
					.clock = w->host_clock,
					.source = VS_SOURCE_HOST,
					.n_cpus = HOST_CPUS,
					.loss = w->options.loss,
					.frame = host_frame,
					.context = w};
	int err = sim_capture_init(&w->host_capture, &o);

	if (err)
		return err;
	o.clock = w->guest_clock;
	o.source = WORLD_VM;
	o.n_cpus = WORLD_VCPUS;
	o.frame = guest_frame;
	return sim_capture_init(&w->guest_capture, &o);
}

static void interrupts_raise(void *context)
{
	struct world *w = context;

	for (uint32_t i = 0; i < WORLD_VCPUS; i++)
		apic_worker(&w->vcpus[i].apic);
}

/* What every host does all the time: short work on every CPU. */
static void background_init(struct world *w)
{
	char worker[16];

	for (uint16_t cpu = 0; cpu < HOST_CPUS; cpu++) {
		char comm[16];
		struct host_thread *t;

		snprintf(comm, sizeof(comm), "kworker/%u:1", cpu % HOST_CPUS);
		t = host_thread_new(&w->host, 100 + cpu, 100 + cpu, comm, cpu);
		t->pinned = true;
		t->urgency = HOST_EAGER;
		if (w->options.load == LOAD_STEADY)
			host_thread_works(t, 10000, 100000, 500000, 3000000);
		else
			host_thread_works(t, 10000, 200000, 8000000, 60000000);
	}
	w->qemu = host_thread_new(&w->host, QEMU_PID, QEMU_PID, "qemu-system-x86", 2);
	w->qemu->followed = true;
	host_thread_works(w->qemu, 20000, 120000, 10000000, 80000000);
	w->killer = host_thread_new(&w->host, 5200, 5200, "stopper", 3);
	host_thread_works(w->killer, 30000, 60000, 0, 0);
	w->hog = host_thread_new(&w->host, 5300, 5300, "hog", 0);
	snprintf(worker, sizeof(worker), "vhost-%d", QEMU_PID);
	w->vhost = host_thread_new(&w->host, 4150, 4150, worker, 3);
	w->vhost->urgency = HOST_EAGER;
	w->vhost->done = interrupts_raise;
	w->vhost->context = w;
	host_thread_works(w->vhost, 2000, 9000, 0, 0);
}

static void load_init(struct world *w, struct guest_cpu_sim *g)
{
	enum world_load load = w->options.load;

	if (load == LOAD_ANY)
		load = (enum world_load)engine_between(&w->engine, LOAD_ALONE, LOAD_SERVER);
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

static void guest_init(struct world *w)
{
	uint32_t agent_cpu = (uint32_t)engine_between(&w->engine, 0, WORLD_VCPUS - 1);

	if (w->options.load == LOAD_PAIR)
		agent_cpu = (w->target + 1) % WORLD_VCPUS;
	for (uint32_t i = 0; i < WORLD_VCPUS; i++) {
		struct guest_cpu_sim *g = &w->guests[i];
		struct host_thread *thread;
		char comm[16];

		snprintf(comm, sizeof(comm), "CPU %u/KVM", i % WORLD_VCPUS);
		thread = host_thread_new(&w->host, FIRST_VCPU_TID + (int32_t)i, QEMU_PID, comm,
					 (uint16_t)i);
		guest_sim_init(g, &w->engine, &w->pace, &w->guest_capture, &w->truth, &w->vcpus[i],
			       (uint16_t)i);
		vcpu_sim_init(&w->vcpus[i], thread, g, &w->truth, w->kvm_events);
		w->vcpus[i].index = i;
		w->vcpus[i].apic.worker = w->interrupts ? w->vhost : NULL;
		w->vcpus[i].apic.posted = w->posted;
		w->vcpus[i].apic.shown = w->interrupts;
		if (i == w->target) {
			load_init(w, g);
		} else {
			guest_task_new(g, 720, "cron", 50000, 900000, 10000000, 60000000);
			guest_task_new(g, 721, "logger", 20000, 300000, 5000000, 50000000);
		}
		truth_phase(&w->truth, i, SIM_STATE_HALTED, SIM_CAUSE_NONE, 0);
		host_wake(thread, NULL);
		if (w->interrupts)
			engine_at(&w->engine, engine_between(&w->engine, 0, 60000000), traffic, g,
				  0);
	}
	w->agent = guest_task_new(&w->guests[agent_cpu], 350, "vcpuscope-agent", 60000, 250000,
				  50000000, 51000000);
	w->agent->eager = true;
	w->agent->device_share = 1;
	w->agent->done = agent_done;
	w->agent->context = w;
}

int world_init(struct world *w, const struct world_options *o)
{
	int err;

	memset(w, 0, sizeof(*w));
	w->options = *o;
	w->parcels_end = &w->parcels;
	engine_init(&w->engine, o->seed);
	w->pace = o->pace;
	if (o->load == LOAD_STEADY)
		pace_vary(&w->pace, &w->engine, steady_jitter);
	w->kvm_events = engine_chance(&w->engine, 0.5) || o->load == LOAD_STEADY || o->kvm_events;
	/* Runs of a steady load are made alike. */
	w->posted = engine_chance(&w->engine, 0.3) && o->load != LOAD_STEADY;
	w->interrupts = w->kvm_events && (o->interrupts || o->load == LOAD_STEADY);
	w->target = (uint32_t)engine_between(&w->engine, 0, WORLD_VCPUS - 1);
	clocks_draw(w);
	err = recording_writer_open(o->path, VS_RECORDING_SIMULATED, w->host_clock.realtime0,
				    &w->recording);
	if (!err)
		err = captures_init(w);
	if (err)
		return err;
	truth_init(&w->truth, &w->engine, WORLD_VCPUS);
	w->stacks.capture = &w->host_capture;
	w->stacks.kernel = (enum sim_kernel)engine_between(&w->engine, 0, SIM_KERNEL_COUNT - 1);
	host_init(&w->host, &w->engine, &w->pace, &w->host_capture, &w->stacks, HOST_CPUS);
	sim_capture_hello(&w->host_capture, "simulator", "simulated-host");
	sim_capture_sample(&w->host_capture);
	vm_info(w);
	w->shows_clock = o->shows_clock && engine_chance(&w->engine, 0.5);
	world_clock_emit(w);
	world_note(w, NOTE_SIMULATED, "made by vcpuscope simulate");
	if (o->agent_late)
		life_agent_absent(w);
	else
		sim_capture_hello(&w->guest_capture, "simulator", "simulated-guest");
	background_init(w);
	guest_init(w);
	engine_at(&w->engine, 1000000, echo_send, w, 0);
	engine_at(&w->engine, HOST_DRAIN_NS, collector_drain, w, 0);
	engine_at(&w->engine, HOST_HEARTBEAT_NS, collector_heartbeat, w, 0);
	return w->engine.error;
}

int world_run(struct world *w, int64_t t)
{
	return engine_run(&w->engine, t);
}

int world_close(struct world *w)
{
	int err;

	if (!w->agent_gone) {
		sim_capture_drain(&w->guest_capture);
		sim_capture_heartbeat(&w->guest_capture);
	}
	while (w->parcels)
		parcel_arrives(w, 0);
	sim_capture_drain(&w->host_capture);
	sim_stacks_flush(&w->stacks);
	sim_capture_heartbeat(&w->host_capture);
	err = recording_writer_close(w->recording, 0);
	w->recording = NULL;
	return w->engine.error ? w->engine.error : err;
}

void world_fini(struct world *w)
{
	while (w->parcels) {
		struct world_parcel *p = w->parcels;

		w->parcels = p->next;
		free(p);
	}
	if (w->recording)
		recording_writer_close(w->recording, 0);
	/* Echoes still on their way own their memory. */
	for (size_t i = 0; i < w->engine.n; i++) {
		if (w->engine.heap[i].action == echo_home)
			free(w->engine.heap[i].object);
	}
	sim_capture_fini(&w->host_capture);
	sim_capture_fini(&w->guest_capture);
	truth_fini(&w->truth);
	engine_fini(&w->engine);
}
