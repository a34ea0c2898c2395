// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/simulate/life.h"
#include "host-collector/simulate/vm.h"

enum {
	HOST_DRAIN_NS = 20000000,
	HOST_HEARTBEAT_NS = 100000000,
};
static const double duplicate_share = 0.01; /* of the frames */
/* By so much do runs of the same steady load differ in each stage. */
static const double steady_jitter = 0.02;

/* ---- the recorder ---- */

void world_entry(struct world *w, uint32_t source, const uint8_t *frame, size_t len)
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
	world_entry(context, source, frame, len);
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

static void collector_heartbeat(void *object, uint64_t argument)
{
	struct world *w = object;

	(void)argument;
	for (uint32_t i = 0; i < w->n_vms; i++)
		sim_vm_quota_emit(&w->vms[i]);
	sim_capture_heartbeat(&w->host_capture);
	engine_at(&w->engine, w->engine.now + HOST_HEARTBEAT_NS, collector_heartbeat, w, 0);
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
	for (uint32_t i = 0; i < w->n_vms; i++)
		sim_vm_clock_draw(&w->vms[i]);
}

/* Each vCPU may have a pCPU of its own. */
static uint16_t host_cpus(const struct world *w)
{
	return (uint16_t)(w->n_vms * w->options.n_vcpus + WORLD_SPARE_CPUS);
}

static int captures_init(struct world *w)
{
	const struct sim_capture_options o = {.engine = &w->engine,
					      .clock = w->host_clock,
					      .source = VS_SOURCE_HOST,
					      .n_cpus = host_cpus(w),
					      .loss = w->options.loss,
					      .frame = host_frame,
					      .context = w};
	int err = sim_capture_init(&w->host_capture, &o);

	for (uint32_t i = 0; !err && i < w->n_vms; i++)
		err = sim_vm_capture_init(&w->vms[i]);
	return err;
}

/* What every host does all the time: short work on every CPU. */
static void background_init(struct world *w)
{
	for (uint16_t cpu = 0; cpu < w->host.n_cpus; cpu++) {
		char comm[16];
		struct host_thread *t;

		snprintf(comm, sizeof(comm), "kworker/%u:1", cpu % SIM_CPUS_MAX);
		t = host_thread_new(&w->host, 100 + cpu, 100 + cpu, comm, cpu);
		t->pinned = true;
		t->urgency = HOST_EAGER;
		if (w->options.load == LOAD_STEADY)
			host_thread_works(t, 10000, 100000, 500000, 3000000);
		else
			host_thread_works(t, 10000, 200000, 8000000, 60000000);
	}
	w->killer =
		host_thread_new(&w->host, 5200, 5200, "stopper", (uint16_t)(w->host.n_cpus - 1));
	host_thread_works(w->killer, 30000, 60000, 0, 0);
	w->hog = host_thread_new(&w->host, 5300, 5300, "hog", 0);
	for (uint32_t i = 0; i < w->n_vms; i++)
		sim_vm_threads_init(&w->vms[i]);
}

/* Says which VMs there are; the agents that run say hello. */
static void vms_announce(struct world *w)
{
	for (uint32_t i = 0; i < w->n_vms; i++)
		sim_vm_info_emit(&w->vms[i]);
	w->shows_clock = (w->options.shows_clock && engine_chance(&w->engine, 0.5)) ||
			 w->options.protection != VM_PROTECTION_NONE;
	for (uint32_t i = 0; i < w->n_vms; i++)
		sim_vm_clock_emit(&w->vms[i]);
	sim_vm_note(&w->vms[0], NOTE_SIMULATED, "made by vcpuscope simulate");
	for (uint32_t i = 0; i < w->n_vms; i++) {
		if (i == 0 && w->options.agent_late)
			life_agent_absent(&w->vms[i]);
		else
			life_agent_hello(&w->vms[i]);
	}
}

int world_init(struct world *w, const struct world_options *o)
{
	int err = 0;

	memset(w, 0, sizeof(*w));
	w->options = *o;
	w->options.n_vms = o->n_vms ? o->n_vms : 1;
	w->options.n_vcpus = o->n_vcpus ? o->n_vcpus : WORLD_VCPUS;
	engine_init(&w->engine, o->seed);
	w->pace = o->pace;
	if (o->load == LOAD_STEADY)
		pace_vary(&w->pace, &w->engine, steady_jitter);
	w->kvm_events = engine_chance(&w->engine, 0.5) || o->load == LOAD_STEADY || o->kvm_events;
	/* Runs of a steady load are made alike. */
	w->posted = engine_chance(&w->engine, 0.3) && o->load != LOAD_STEADY;
	w->interrupts = w->kvm_events && (o->interrupts || o->load == LOAD_STEADY);
	w->vms = calloc(w->options.n_vms, sizeof(*w->vms));
	if (!w->vms)
		return -ENOMEM;
	for (; !err && w->n_vms < w->options.n_vms; w->n_vms++)
		err = sim_vm_init(&w->vms[w->n_vms], w, w->n_vms, w->options.n_vcpus);
	if (err)
		return err;
	clocks_draw(w);
	err = recording_writer_open(o->path, VS_RECORDING_SIMULATED, w->host_clock.realtime0,
				    &w->recording);
	if (!err)
		err = captures_init(w);
	if (err)
		return err;
	w->stacks.capture = &w->host_capture;
	w->stacks.kernel = (enum sim_kernel)engine_between(&w->engine, 0, SIM_KERNEL_COUNT - 1);
	host_init(&w->host, &w->engine, &w->pace, &w->host_capture, &w->stacks, host_cpus(w));
	sim_capture_hello(&w->host_capture, "simulator", "simulated-host");
	sim_capture_sample(&w->host_capture);
	vms_announce(w);
	background_init(w);
	for (uint32_t i = 0; i < w->n_vms; i++)
		sim_vm_guest_init(&w->vms[i]);
	if (o->jobs)
		jobs_init(&w->jobs, &w->engine, &w->host_capture, &w->vms[0].guest_capture,
			  w->vms[0].vcpus, w->vms[0].n_vcpus, w->vms[0].pid);
	for (uint32_t i = 0; i < w->n_vms; i++)
		sim_vm_echo_start(&w->vms[i]);
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

	for (uint32_t i = 0; i < w->n_vms; i++)
		sim_vm_close(&w->vms[i]);
	sim_capture_drain(&w->host_capture);
	sim_stacks_flush(&w->stacks);
	sim_capture_heartbeat(&w->host_capture);
	err = recording_writer_close(w->recording, 0);
	w->recording = NULL;
	return w->engine.error ? w->engine.error : err;
}

void world_fini(struct world *w)
{
	if (w->recording)
		recording_writer_close(w->recording, 0);
	for (size_t i = 0; i < w->engine.n; i++)
		sim_vm_action_fini(&w->engine.heap[i]);
	for (uint32_t i = 0; i < w->n_vms; i++)
		sim_vm_fini(&w->vms[i]);
	free(w->vms);
	jobs_fini(&w->jobs);
	sim_capture_fini(&w->host_capture);
	engine_fini(&w->engine);
}
