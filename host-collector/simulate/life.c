// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/life.h"

#include <stdio.h>

enum { STOPPER_PID = 20 };

static struct sim_clock agents_clock(const struct world *w)
{
	struct sim_clock c = w->guest_clock;

	c.tsc0 += w->stamp_lie_ticks;
	return c;
}

static void agent_attach(struct world *w)
{
	struct sim_capture *c = &w->guest_capture;
	struct sim_capture_options o = c->o;
	char boot_id[VS_TEXT_MAX];
	int err;

	o.clock = agents_clock(w);
	sim_capture_fini(c);
	err = sim_capture_init(c, &o);
	if (err) {
		w->engine.error = err;
		return;
	}
	for (uint32_t i = 0; i < WORLD_VCPUS; i++) {
		for (size_t k = 0; k < w->guests[i].n_tasks; k++)
			w->guests[i].tasks[k].announced = false;
		c->mute[i] = w->guests[i].offline;
	}
	snprintf(boot_id, sizeof(boot_id), w->boots ? "simulated-guest-%u" : "simulated-guest",
		 w->boots);
	w->agent_gone = false;
	sim_capture_hello(c, "simulator", boot_id);
}

void life_agent_start(struct world *w)
{
	if (w->agent_gone)
		agent_attach(w);
}

void life_agent_start_torn(struct world *w, int64_t until)
{
	if (!w->agent_gone)
		life_agent_stop(w);
	agent_attach(w);
	w->guest_capture.no_exits_until = until;
}

void life_agent_absent(struct world *w)
{
	w->agent_gone = true;
	for (uint32_t i = 0; i < WORLD_VCPUS; i++)
		w->guest_capture.mute[i] = true;
}

void life_agent_stop(struct world *w)
{
	if (w->agent_gone)
		return;
	/* Ended by a signal it says what it saw; killed, the newest is gone with it. */
	if (engine_chance(&w->engine, 0.5)) {
		sim_capture_drain(&w->guest_capture);
		sim_capture_heartbeat(&w->guest_capture);
	}
	life_agent_absent(w);
}

void life_reboot(struct world *w)
{
	life_agent_stop(w);
	w->boots++;
	sim_clock_restart(&w->guest_clock, w->engine.now);
	w->guest_capture.o.boot = w->engine.now;
	world_clock_emit(w);
}

bool life_cpu_offline(struct world *w)
{
	struct guest_cpu_sim *g = &w->guests[(w->agent->cpu->cpu + 1u) % WORLD_VCPUS];
	static const char comm[] = "migration";
	struct guest_task *stopper = &w->stopper;

	if (!vcpu_sim_in_guest(g->vcpu) || g->n_frames || g->pending)
		return false;
	*stopper = (struct guest_task){.cpu = g, .pid = STOPPER_PID};
	snprintf(stopper->comm, sizeof(stopper->comm), "%s/%u", comm, g->cpu % WORLD_VCPUS);
	guest_sim_offline(g, stopper);
	w->guest_capture.mute[g->cpu] = true;
	return true;
}

void life_cpu_online(struct world *w)
{
	for (uint32_t i = 0; i < WORLD_VCPUS; i++) {
		if (!w->guests[i].offline)
			continue;
		w->guest_capture.mute[i] = w->agent_gone;
		guest_sim_online(&w->guests[i]);
	}
}

static uint64_t ticks_of(const struct world *w, int64_t ns)
{
	return (uint64_t)(int64_t)((__int128)ns * (int64_t)w->guest_clock.true_hz / 1000000000);
}

void life_echo_lie(struct world *w, int64_t ns)
{
	w->echo_lie_ticks = ticks_of(w, ns);
}

void life_stamp_lie(struct world *w, int64_t ns)
{
	w->stamp_lie_ticks = ticks_of(w, ns);
	w->guest_capture.o.clock = agents_clock(w);
}
