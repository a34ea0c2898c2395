// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/waits.h"

#include "host-collector/simulate/faults.h"

enum { FOREVER_MS = 100000, RETRY_NS = 50000, STATUS_PORT = 0x1f7, KICK_CPU = 5, PORT_BYTES = 1 };

static struct sim_vcpu *waiter(const struct sim_vm *vm)
{
	return (struct sim_vcpu *)&vm->vcpus[vm->target];
}

static struct sim_vcpu *other(const struct sim_vm *vm)
{
	return (struct sim_vcpu *)&vm->vcpus[(vm->target + 1) % vm->n_vcpus];
}

static bool busy(const struct sim_vcpu *v)
{
	return vcpu_sim_in_guest(v) && v->guest->current && !v->guest->n_frames;
}

static void hog_take(struct sim_vm *vm, struct sim_vcpu *from, int64_t ns)
{
	from->thread->pinned = true;
	vm->world->hog->cpu = from->thread->cpu;
	vm->world->hog->pinned = true;
	vm->world->hog->urgency = HOST_REALTIME;
	host_thread_works(vm->world->hog, ns, ns, 0, 0);
	host_wake(vm->world->hog, NULL);
}

/* ---- how it waits ---- */

static struct sim_vcpu *vcpu_of(const struct guest_cpu_sim *g)
{
	return g->vcpu;
}

/* KVM doubles the time to the next exit each time. */
static void spin_exit(struct guest_cpu_sim *g, struct guest_frame *f)
{
	f->until_exit = f->exit_gap + engine_between(g->engine, 0, f->exit_gap / 4);
	if (f->exit_gap < 100000000)
		f->exit_gap *= 2;
	vcpu_sim_exit(vcpu_of(g), EXIT_PAUSE, NULL, 0);
}

static void halt_exit(struct guest_cpu_sim *g, struct guest_frame *f)
{
	const struct sim_step sleep = {.kind = STEP_SLEEP,
				       .ns = -1,
				       .state = SIM_STATE_HALTED,
				       .cause = f->cause,
				       .task_state = VS_TASK_INTERRUPTIBLE,
				       .stack = &sim_stack_halt,
				       .waking_stack = &sim_stack_interrupt,
				       .halts = true};

	f->until_exit = engine_between(g->engine, 10000, 40000);
	vcpu_sim_exit(vcpu_of(g), EXIT_HLT, &sleep, 1);
}

static void poll_exit(struct guest_cpu_sim *g, struct guest_frame *f)
{
	const struct sim_step vmm = {
		.kind = STEP_VMM, .ns = engine_between(g->engine, 4000, 15000), .cause = f->cause};
	struct vs_event pio = {.type = VS_EVENT_KVM_PIO};

	f->until_exit = engine_between(g->engine, 20000, 80000);
	vcpu_sim_exit(vcpu_of(g), EXIT_IO, &vmm, 1);
	ev_set_kvm_pio_port(&pio, STATUS_PORT);
	ev_set_kvm_pio_bytes(&pio, PORT_BYTES);
	ev_set_kvm_pio_count(&pio, 1);
	vcpu_sim_event(vcpu_of(g), pio);
}

/* After its entry only the host's own ticks lead out of it. */
static void nested_exit(struct guest_cpu_sim *g, struct guest_frame *f)
{
	bool first = f->exit_gap == 0;

	f->exit_gap = 4000000;
	f->until_exit = engine_between(g->engine, f->exit_gap / 2, f->exit_gap);
	vcpu_sim_exit(vcpu_of(g), first ? EXIT_RESUME : EXIT_EXTERNAL, NULL, 0);
}

static struct guest_frame frame_of(struct sim_vm *vm, enum sim_cause cause,
				   void (*exits)(struct guest_cpu_sim *g, struct guest_frame *f))
{
	return (struct guest_frame){.kind = FRAME_OF_SECTION,
				    .preempt_off = true,
				    .cause = cause,
				    .culprit = vm->world->hog->tid,
				    .left = (int64_t)FOREVER_MS * 1000000,
				    .exits = exits,
				    .until_exit = engine_between(vm->engine, 1000, 3000),
				    .exit_gap = exits == spin_exit ? 2000 : 0};
}

/* ---- for another vCPU ---- */

static void wait_over(void *context)
{
	struct sim_vm *vm = context;

	guest_sim_release(waiter(vm)->guest);
}

static void lock_released(void *context)
{
	struct sim_vm *vm = context;
	struct sim_vcpu *v = waiter(vm), *by = other(vm);
	struct vs_event hypercall = {.type = VS_EVENT_KVM_HYPERCALL};

	guest_sim_release(v->guest);
	if (!vm->wait_halts || vcpu_sim_in_guest(v))
		return;
	if (vcpu_sim_in_guest(by)) {
		vcpu_sim_exit(by, EXIT_HYPERCALL, NULL, 0);
		ev_set_kvm_hypercall_number(&hypercall, KICK_CPU);
		vcpu_sim_event(by, hypercall);
	}
	vcpu_sim_kick(v, by->thread);
}

static bool lock_begin(struct sim_vm *vm, int64_t held_ns, enum sim_cause cause,
		       enum sim_cause owners)
{
	struct engine *e = vm->engine;
	struct guest_frame owner = {.kind = FRAME_OF_SECTION,
				    .preempt_off = true,
				    .irqs_off = true,
				    .cause = owners,
				    .left = held_ns,
				    .done = lock_released,
				    .context = vm};
	struct guest_frame wait = frame_of(vm, cause, vm->wait_halts ? halt_exit : spin_exit);

	wait.irqs_off = owners != SIM_CAUSE_NONE || (!vm->wait_halts && engine_chance(e, 0.5));
	guest_sim_push(other(vm)->guest, &owner);
	guest_sim_push(waiter(vm)->guest, &wait);
	return true;
}

static bool owner_preempted(struct sim_vm *vm, int64_t ns, bool halts)
{
	if (!busy(waiter(vm)) || !busy(other(vm)))
		return false;
	vm->wait_halts = halts;
	lock_begin(vm, engine_between(vm->engine, 60000, 300000), SIM_CAUSE_LOCK_OWNER,
		   SIM_CAUSE_NONE);
	hog_take(vm, other(vm), ns);
	return true;
}

bool wait_for_owner(struct sim_vm *vm, int64_t ns)
{
	return owner_preempted(vm, ns, false);
}

bool wait_paravirtual(struct sim_vm *vm, int64_t ns)
{
	return owner_preempted(vm, ns, true);
}

bool wait_contended(struct sim_vm *vm, int64_t ns)
{
	if (!busy(waiter(vm)) || !busy(other(vm)))
		return false;
	vm->wait_halts = false;
	return lock_begin(vm, ns, SIM_CAUSE_SPIN, SIM_CAUSE_SPIN);
}

static void call_send(void *object, uint64_t until)
{
	struct sim_vm *vm = object;
	struct sim_vcpu *v = waiter(vm), *to = other(vm);
	struct guest_frame wait;

	if (!busy(v) || to->thread->state == HOST_RUNNING) {
		if ((uint64_t)vm->engine->now < until)
			engine_at(vm->engine, vm->engine->now + RETRY_NS, call_send, vm, until);
		return;
	}
	wait = frame_of(vm, SIM_CAUSE_CALL, spin_exit);
	guest_sim_push(v->guest, &wait);
	vcpu_sim_exit(v, EXIT_APIC_WRITE, NULL, 0);
	to->guest->called = wait_over;
	to->guest->called_context = vm;
	apic_call(&to->apic, GUEST_CALL, v);
}

bool wait_for_call(struct sim_vm *vm, int64_t ns)
{
	if (!busy(other(vm)))
		return false;
	hog_take(vm, other(vm), ns);
	engine_at(vm->engine, vm->engine->now + RETRY_NS, call_send, vm,
		  (uint64_t)(vm->engine->now + ns / 2));
	return true;
}

bool wait_beside_steal(struct sim_vm *vm, int64_t ns)
{
	struct guest_frame spin = frame_of(vm, SIM_CAUSE_SPIN, NULL);

	if (!busy(waiter(vm)))
		return false;
	spin.irqs_off = true;
	spin.left = ns;
	guest_sim_push(waiter(vm)->guest, &spin);
	hog_take(vm, other(vm), engine_between(vm->engine, ns / 2, ns * 9 / 10));
	return true;
}

/* ---- for a device, or a guest of its own ---- */

static void answers(void *object, uint64_t argument)
{
	(void)argument;
	wait_over(object);
}

static bool wait_until(struct sim_vm *vm, int64_t ns, struct guest_frame frame)
{
	if (!busy(waiter(vm)))
		return false;
	guest_sim_push(waiter(vm)->guest, &frame);
	engine_at(vm->engine, vm->engine->now + ns, answers, vm, 0);
	return true;
}

bool wait_polling(struct sim_vm *vm, int64_t ns)
{
	struct guest_frame frame = frame_of(vm, SIM_CAUSE_DEVICE, poll_exit);

	frame.culprit = 0;
	return wait_until(vm, ns, frame);
}

bool wait_nested(struct sim_vm *vm, int64_t ns)
{
	struct guest_frame frame = frame_of(vm, SIM_CAUSE_NESTED, nested_exit);

	frame.culprit = 0;
	frame.irqs_off = true;
	return wait_until(vm, ns, frame);
}

static void nested_again(void *object, uint64_t until)
{
	struct sim_vm *vm = object;

	if ((uint64_t)vm->engine->now >= until)
		return;
	if (busy(waiter(vm)))
		vcpu_sim_exit(waiter(vm), EXIT_RESUME, NULL, 0);
	engine_at(vm->engine, vm->engine->now + engine_between(vm->engine, 80000, 400000),
		  nested_again, vm, until);
}

bool nested_life(struct sim_vm *vm, int64_t ns)
{
	nested_again(vm, (uint64_t)(vm->engine->now + ns));
	return true;
}
