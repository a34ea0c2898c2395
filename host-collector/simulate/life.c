// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/life.h"

#include <stdio.h>

enum { STOPPER_PID = 20 };

static struct sim_clock agents_clock(const struct sim_vm *vm)
{
	struct sim_clock c = vm->guest_clock;

	c.tsc0 += vm->stamp_lie_ticks;
	return c;
}

void life_agent_hello(struct sim_vm *vm)
{
	char boot_id[VS_TEXT_MAX];
	int n = snprintf(boot_id, sizeof(boot_id), "%s-guest", vm->name);

	if (vm->boots)
		snprintf(boot_id + n, sizeof(boot_id) - (size_t)n, "-%u", vm->boots);
	sim_capture_hello(&vm->guest_capture, "simulator", boot_id);
}

static void agent_attach(struct sim_vm *vm)
{
	struct sim_capture *c = &vm->guest_capture;
	struct sim_capture_options o = c->o;
	int err;

	o.clock = agents_clock(vm);
	sim_capture_fini(c);
	err = sim_capture_init(c, &o);
	if (err) {
		vm->engine->error = err;
		return;
	}
	for (uint32_t i = 0; i < vm->n_vcpus; i++) {
		for (size_t k = 0; k < vm->guests[i].n_tasks; k++)
			vm->guests[i].tasks[k].announced = false;
		c->mute[i] = vm->guests[i].offline;
	}
	vm->agent_gone = false;
	life_agent_hello(vm);
}

void life_agent_start(struct sim_vm *vm)
{
	if (vm->agent_gone)
		agent_attach(vm);
}

void life_agent_start_torn(struct sim_vm *vm, int64_t until)
{
	if (!vm->agent_gone)
		life_agent_stop(vm);
	agent_attach(vm);
	vm->guest_capture.no_exits_until = until;
}

void life_agent_absent(struct sim_vm *vm)
{
	vm->agent_gone = true;
	for (uint32_t i = 0; i < vm->n_vcpus; i++)
		vm->guest_capture.mute[i] = true;
}

void life_agent_stop(struct sim_vm *vm)
{
	if (vm->agent_gone)
		return;
	/* Ended by a signal it says what it saw; killed, the newest is gone with it. */
	if (engine_chance(vm->engine, 0.5)) {
		sim_capture_drain(&vm->guest_capture);
		sim_capture_heartbeat(&vm->guest_capture);
	}
	life_agent_absent(vm);
}

void life_reboot(struct sim_vm *vm)
{
	life_agent_stop(vm);
	vm->boots++;
	sim_clock_restart(&vm->guest_clock, vm->engine->now);
	vm->guest_capture.o.boot = vm->engine->now;
	sim_vm_clock_emit(vm);
}

bool life_cpu_offline(struct sim_vm *vm)
{
	struct guest_cpu_sim *g = &vm->guests[(vm->agent->cpu->cpu + 1u) % vm->n_vcpus];
	static const char comm[] = "migration";
	struct guest_task *stopper = &vm->stopper;

	if (!vcpu_sim_in_guest(g->vcpu) || g->n_frames || g->pending)
		return false;
	*stopper = (struct guest_task){.cpu = g, .pid = STOPPER_PID};
	snprintf(stopper->comm, sizeof(stopper->comm), "%s/%u", comm, g->cpu % WORLD_VCPUS_MAX);
	guest_sim_offline(g, stopper);
	vm->guest_capture.mute[g->cpu] = true;
	return true;
}

void life_cpu_online(struct sim_vm *vm)
{
	for (uint32_t i = 0; i < vm->n_vcpus; i++) {
		if (!vm->guests[i].offline)
			continue;
		vm->guest_capture.mute[i] = vm->agent_gone;
		guest_sim_online(&vm->guests[i]);
	}
}

static uint64_t ticks_of(const struct sim_vm *vm, int64_t ns)
{
	return (uint64_t)(int64_t)((__int128)ns * (int64_t)vm->guest_clock.true_hz / 1000000000);
}

void life_echo_lie(struct sim_vm *vm, int64_t ns)
{
	vm->echo_lie_ticks = ticks_of(vm, ns);
}

void life_stamp_lie(struct sim_vm *vm, int64_t ns)
{
	vm->stamp_lie_ticks = ticks_of(vm, ns);
	vm->guest_capture.o.clock = agents_clock(vm);
}
