// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/waits.h"

#include "host-collector/simulate/faults.h"

enum { FOREVER_MS = 100000, RETRY_NS = 50000, STATUS_PORT = 0x1f7, KICK_CPU = 5, PORT_BYTES = 1 };

static struct sim_vcpu *waiter(const struct world *w)
{
	return (struct sim_vcpu *)&w->vcpus[w->target];
}

static struct sim_vcpu *other(const struct world *w)
{
	return (struct sim_vcpu *)&w->vcpus[(w->target + 1) % WORLD_VCPUS];
}

static bool busy(const struct sim_vcpu *v)
{
	return vcpu_sim_in_guest(v) && v->guest->current && !v->guest->n_frames;
}

static void hog_take(struct world *w, struct sim_vcpu *from, int64_t ns)
{
	from->thread->pinned = true;
	w->hog->cpu = from->thread->cpu;
	w->hog->pinned = true;
	w->hog->urgency = HOST_REALTIME;
	host_thread_works(w->hog, ns, ns, 0, 0);
	host_wake(w->hog, NULL);
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

	f->until_exit = engine_between(g->engine, 20000, 80000);
	vcpu_sim_exit(vcpu_of(g), EXIT_IO, &vmm, 1);
	vcpu_sim_event(vcpu_of(g), VS_EVENT_KVM_PIO, STATUS_PORT | (uint64_t)PORT_BYTES << 32,
		       1ull << 32);
}

/* After its entry only the host's own ticks lead out of it. */
static void nested_exit(struct guest_cpu_sim *g, struct guest_frame *f)
{
	bool first = f->exit_gap == 0;

	f->exit_gap = 4000000;
	f->until_exit = engine_between(g->engine, f->exit_gap / 2, f->exit_gap);
	vcpu_sim_exit(vcpu_of(g), first ? EXIT_RESUME : EXIT_EXTERNAL, NULL, 0);
}

static struct guest_frame frame_of(struct world *w, enum sim_cause cause,
				   void (*exits)(struct guest_cpu_sim *g, struct guest_frame *f))
{
	return (struct guest_frame){.kind = FRAME_OF_SECTION,
				    .preempt_off = true,
				    .cause = cause,
				    .culprit = w->hog->tid,
				    .left = (int64_t)FOREVER_MS * 1000000,
				    .exits = exits,
				    .until_exit = engine_between(&w->engine, 1000, 3000),
				    .exit_gap = exits == spin_exit ? 2000 : 0};
}

/* ---- for another vCPU ---- */

static void wait_over(void *context)
{
	struct world *w = context;

	guest_sim_release(waiter(w)->guest);
}

static void lock_released(void *context)
{
	struct world *w = context;
	struct sim_vcpu *v = waiter(w), *by = other(w);

	guest_sim_release(v->guest);
	if (!w->wait_halts || vcpu_sim_in_guest(v))
		return;
	if (vcpu_sim_in_guest(by)) {
		vcpu_sim_exit(by, EXIT_HYPERCALL, NULL, 0);
		vcpu_sim_event(by, VS_EVENT_KVM_HYPERCALL, KICK_CPU, 0);
	}
	vcpu_sim_kick(v, by->thread);
}

static bool lock_begin(struct world *w, int64_t held_ns, enum sim_cause cause,
		       enum sim_cause owners)
{
	struct engine *e = &w->engine;
	struct guest_frame owner = {.kind = FRAME_OF_SECTION,
				    .preempt_off = true,
				    .irqs_off = true,
				    .cause = owners,
				    .left = held_ns,
				    .done = lock_released,
				    .context = w};
	struct guest_frame wait = frame_of(w, cause, w->wait_halts ? halt_exit : spin_exit);

	wait.irqs_off = owners != SIM_CAUSE_NONE || (!w->wait_halts && engine_chance(e, 0.5));
	guest_sim_push(other(w)->guest, &owner);
	guest_sim_push(waiter(w)->guest, &wait);
	return true;
}

static bool owner_preempted(struct world *w, int64_t ns, bool halts)
{
	if (!busy(waiter(w)) || !busy(other(w)))
		return false;
	w->wait_halts = halts;
	lock_begin(w, engine_between(&w->engine, 60000, 300000), SIM_CAUSE_LOCK_OWNER,
		   SIM_CAUSE_NONE);
	hog_take(w, other(w), ns);
	return true;
}

bool wait_for_owner(struct world *w, int64_t ns)
{
	return owner_preempted(w, ns, false);
}

bool wait_paravirtual(struct world *w, int64_t ns)
{
	return owner_preempted(w, ns, true);
}

bool wait_contended(struct world *w, int64_t ns)
{
	if (!busy(waiter(w)) || !busy(other(w)))
		return false;
	w->wait_halts = false;
	return lock_begin(w, ns, SIM_CAUSE_SPIN, SIM_CAUSE_SPIN);
}

static void call_send(void *object, uint64_t until)
{
	struct world *w = object;
	struct sim_vcpu *v = waiter(w), *to = other(w);
	struct guest_frame wait;

	if (!busy(v) || to->thread->state == HOST_RUNNING) {
		if ((uint64_t)w->engine.now < until)
			engine_at(&w->engine, w->engine.now + RETRY_NS, call_send, w, until);
		return;
	}
	wait = frame_of(w, SIM_CAUSE_CALL, spin_exit);
	guest_sim_push(v->guest, &wait);
	vcpu_sim_exit(v, EXIT_APIC_WRITE, NULL, 0);
	to->guest->called = wait_over;
	to->guest->called_context = w;
	apic_call(&to->apic, GUEST_CALL, v);
}

bool wait_for_call(struct world *w, int64_t ns)
{
	if (!busy(other(w)))
		return false;
	hog_take(w, other(w), ns);
	engine_at(&w->engine, w->engine.now + RETRY_NS, call_send, w,
		  (uint64_t)(w->engine.now + ns / 2));
	return true;
}

bool wait_beside_steal(struct world *w, int64_t ns)
{
	struct guest_frame spin = frame_of(w, SIM_CAUSE_SPIN, NULL);

	if (!busy(waiter(w)))
		return false;
	spin.irqs_off = true;
	spin.left = ns;
	guest_sim_push(waiter(w)->guest, &spin);
	hog_take(w, other(w), engine_between(&w->engine, ns / 2, ns * 9 / 10));
	return true;
}

/* ---- for a device, or a guest of its own ---- */

static void answers(void *object, uint64_t argument)
{
	(void)argument;
	wait_over(object);
}

static bool wait_until(struct world *w, int64_t ns, struct guest_frame frame)
{
	if (!busy(waiter(w)))
		return false;
	guest_sim_push(waiter(w)->guest, &frame);
	engine_at(&w->engine, w->engine.now + ns, answers, w, 0);
	return true;
}

bool wait_polling(struct world *w, int64_t ns)
{
	struct guest_frame frame = frame_of(w, SIM_CAUSE_DEVICE, poll_exit);

	frame.culprit = 0;
	return wait_until(w, ns, frame);
}

bool wait_nested(struct world *w, int64_t ns)
{
	struct guest_frame frame = frame_of(w, SIM_CAUSE_NESTED, nested_exit);

	frame.culprit = 0;
	frame.irqs_off = true;
	return wait_until(w, ns, frame);
}

static void nested_again(void *object, uint64_t until)
{
	struct world *w = object;

	if ((uint64_t)w->engine.now >= until)
		return;
	if (busy(waiter(w)))
		vcpu_sim_exit(waiter(w), EXIT_RESUME, NULL, 0);
	engine_at(&w->engine, w->engine.now + engine_between(&w->engine, 80000, 400000),
		  nested_again, w, until);
}

bool nested_life(struct world *w, int64_t ns)
{
	nested_again(w, (uint64_t)(w->engine.now + ns));
	return true;
}
