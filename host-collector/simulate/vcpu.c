// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/vcpu.h"

#include <linux/kvm.h>
#include <string.h>

enum { ISA_VMX = 1 };

/* Where the guest's kernel is at all its entries and exits. */
static const uint64_t guest_rip = 0xffffffff81000000;

static void plan_continue(struct sim_vcpu *v);

void vcpu_sim_event(struct sim_vcpu *v, struct vs_event e)
{
	e.pid = v->thread->tid;
	if (v->kvm_events)
		sim_host_event(v->thread, e);
}

static void entry_emit(struct sim_vcpu *v)
{
	struct vs_event e = {.type = VS_EVENT_KVM_ENTRY};

	ev_set_kvm_entry_rip(&e, guest_rip);
	vcpu_sim_event(v, e);
}

static void exit_emit(struct sim_vcpu *v, enum sim_exit reason)
{
	struct vs_event e = {.type = VS_EVENT_KVM_EXIT};

	ev_set_kvm_exit_reason(&e, reason);
	ev_set_kvm_exit_isa(&e, ISA_VMX);
	ev_set_kvm_exit_rip(&e, guest_rip);
	vcpu_sim_event(v, e);
}

static void userspace_exit_emit(struct sim_vcpu *v)
{
	struct vs_event e = {.type = VS_EVENT_KVM_USERSPACE_EXIT};

	ev_set_kvm_userspace_exit_reason(&e, KVM_EXIT_MMIO);
	vcpu_sim_event(v, e);
}

bool vcpu_sim_in_guest(const struct sim_vcpu *v)
{
	return v->thread->state == HOST_RUNNING && v->mode == MODE_IN_GUEST;
}

void vcpu_sim_emit(struct sim_vcpu *v)
{
	const struct host_thread *t = v->thread;
	const struct sim_step *s = v->steps;
	const struct host_thread *holder;
	int32_t culprit = 0;
	enum sim_cause cause;

	switch (t->state) {
	case HOST_RUNNING:
		if (v->mode == MODE_IN_GUEST) {
			cause = guest_sim_cause(v->guest, &culprit);
			truth_phase(v->truth, v->index, SIM_STATE_GUEST, cause, culprit);
		} else {
			truth_phase(v->truth, v->index,
				    v->mode == MODE_IN_KVM ? SIM_STATE_KVM : SIM_STATE_VMM,
				    v->n_steps ? s->cause : SIM_CAUSE_NONE, 0);
		}
		break;
	case HOST_READY:
		holder = t->host->pcpus[t->cpu].current;
		if (t->throttled)
			truth_phase(v->truth, v->index, SIM_STATE_THROTTLED, SIM_CAUSE_QUOTA, 0);
		else
			truth_phase(v->truth, v->index, SIM_STATE_RUNNABLE,
				    t->host->pcpus[t->cpu].locked_up ? SIM_CAUSE_LOCKUP
								     : SIM_CAUSE_NOT_SCHEDULED,
				    holder ? holder->tid : 0);
		break;
	case HOST_SLEEPING:
		truth_phase(v->truth, v->index, s->state, s->cause,
			    s->cause && s->waker ? s->waker->tid : 0);
		break;
	}
}

static void settle(struct sim_vcpu *v)
{
	v->generation++;
	if (!v->step_begun)
		return;
	v->step_begun = false;
	if (v->n_steps && v->steps[0].kind != STEP_SLEEP) {
		v->steps[0].ns -= v->engine->now - v->step_since;
		if (v->steps[0].ns < 0)
			v->steps[0].ns = 0;
	}
}

static void step_remove(struct sim_vcpu *v, size_t at)
{
	memmove(&v->steps[at], &v->steps[at + 1], (--v->n_steps - at) * sizeof(v->steps[0]));
}

static void step_insert(struct sim_vcpu *v, size_t at, const struct sim_step *step)
{
	if (v->n_steps == VCPU_STEPS_MAX)
		return;
	memmove(&v->steps[at + 1], &v->steps[at], (v->n_steps++ - at) * sizeof(v->steps[0]));
	v->steps[at] = *step;
}

static void step_done(void *object, uint64_t generation)
{
	struct sim_vcpu *v = object;

	if (v->generation != generation || v->thread->state != HOST_RUNNING)
		return;
	v->step_begun = false;
	step_remove(v, 0);
	plan_continue(v);
}

static void sleep_done(void *object, uint64_t generation)
{
	struct sim_vcpu *v = object;
	struct host_thread *waker = v->n_steps ? v->steps[0].waker : NULL;

	if (v->generation != generation || v->thread->state != HOST_SLEEPING)
		return;
	v->thread->waking_stack = v->steps[0].waking_stack;
	v->generation++;
	step_remove(v, 0);
	host_wake(v->thread, waker);
	vcpu_sim_emit(v);
}

static void plan_continue(struct sim_vcpu *v)
{
	struct sim_step *s = v->steps;

	v->generation++;
	if (!v->n_steps) {
		apic_enter(&v->apic);
		v->mode = MODE_IN_GUEST;
		entry_emit(v);
		vcpu_sim_emit(v);
		guest_sim_enter(v->guest);
		return;
	}
	if (s->kind == STEP_SLEEP) {
		if (s->ns >= 0)
			engine_at(v->engine, v->engine->now + s->ns, sleep_done, v,
				  v->generation + 1); /* host_sleep settles once */
		host_sleep(v->thread, s->task_state, s->stack);
		vcpu_sim_emit(v);
		return;
	}
	if (s->kind == STEP_VMM && v->mode != MODE_IN_VMM)
		userspace_exit_emit(v);
	v->mode = s->kind == STEP_VMM ? MODE_IN_VMM : MODE_IN_KVM;
	v->step_since = v->engine->now;
	v->step_begun = true;
	vcpu_sim_emit(v);
	engine_at(v->engine, v->engine->now + s->ns, step_done, v, v->generation);
}

static void guest_left(struct sim_vcpu *v, enum sim_exit reason)
{
	guest_sim_leave(v->guest);
	exit_emit(v, reason);
	apic_left(&v->apic);
	v->mode = MODE_IN_KVM;
}

static void emit_later(void *object, uint64_t argument)
{
	(void)argument;
	vcpu_sim_emit(object);
}

static void thread_leaves(struct host_thread *t)
{
	struct sim_vcpu *v = t->owner;

	if (v->mode == MODE_IN_GUEST)
		guest_left(v, EXIT_EXTERNAL);
	settle(v);
	/* The thread's state changes with the switch that follows. */
	engine_at(v->engine, v->engine->now, emit_later, v, 0);
}

static void thread_runs(struct host_thread *t)
{
	struct sim_vcpu *v = t->owner;

	plan_continue(v);
}

static const struct host_thread_ops vcpu_ops = {thread_leaves, thread_runs};

void vcpu_sim_init(struct sim_vcpu *v, struct host_thread *thread, struct guest_cpu_sim *guest,
		   struct truth *truth, bool kvm_events)
{
	v->engine = thread->host->engine;
	v->truth = truth;
	v->thread = thread;
	v->guest = guest;
	v->kvm_events = kvm_events;
	v->mode = MODE_IN_KVM;
	apic_init(&v->apic, v);
	thread->ops = &vcpu_ops;
	thread->owner = v;
	thread->is_vcpu = thread->followed = true;
}

void vcpu_sim_exit(struct sim_vcpu *v, enum sim_exit reason, const struct sim_step *steps, size_t n)
{
	const struct sim_step handle = {
		.kind = STEP_KVM,
		.ns = pace_draw(v->thread->host->pace, v->engine, PACE_EXIT_KVM, 700, 3000)};

	guest_left(v, reason);
	step_insert(v, v->n_steps, &handle);
	for (size_t i = 0; i < n; i++)
		step_insert(v, v->n_steps, &steps[i]);
	plan_continue(v);
}

void vcpu_sim_halt(struct sim_vcpu *v)
{
	const struct sim_step sleep = {.kind = STEP_SLEEP,
				       .ns = -1,
				       .state = SIM_STATE_HALTED,
				       .task_state = VS_TASK_INTERRUPTIBLE,
				       .stack = &sim_stack_halt,
				       .waking_stack = &sim_stack_interrupt,
				       .halts = true};

	vcpu_sim_exit(v, EXIT_HLT, &sleep, 1);
}

/* Ends a halt, also one that has not begun. Returns whether there was one. */
static bool halt_end(struct sim_vcpu *v, struct host_thread *waker)
{
	for (size_t i = 0; i < v->n_steps; i++) {
		if (!v->steps[i].halts)
			continue;
		if (i == 0 && v->thread->state == HOST_SLEEPING) {
			v->thread->waking_stack = v->steps[0].waking_stack;
			step_remove(v, 0);
			host_wake(v->thread, waker);
			vcpu_sim_emit(v);
		} else {
			step_remove(v, i);
		}
		return true;
	}
	return false;
}

void vcpu_sim_kick(struct sim_vcpu *v, struct host_thread *waker)
{
	if (vcpu_sim_in_guest(v) && waker && v->apic.posted)
		guest_sim_poke(v->guest);
	else if (vcpu_sim_in_guest(v))
		vcpu_sim_exit(v, waker ? EXIT_EXTERNAL : EXIT_TIMER, NULL, 0);
	else
		halt_end(v, waker);
}

void vcpu_sim_stop(struct sim_vcpu *v, const struct sim_step *step, struct host_thread *by)
{
	const struct sim_step notice = {.kind = STEP_KVM, .ns = 2000};

	if (vcpu_sim_in_guest(v)) {
		vcpu_sim_exit(v, EXIT_EXTERNAL, step, 1);
		return;
	}
	halt_end(v, by);
	if (v->thread->state == HOST_RUNNING) {
		step_insert(v, v->n_steps, step); /* when it next leaves the kernel */
		return;
	}
	/* Behind a sleep that signals do not end; the step under way is the first. */
	step_insert(v, v->n_steps, &notice);
	step_insert(v, v->n_steps, step);
}

void vcpu_sim_continue(struct sim_vcpu *v, struct host_thread *by)
{
	for (size_t i = 0; i < v->n_steps; i++) {
		if (!v->steps[i].stops)
			continue;
		if (i == 0 && v->thread->state == HOST_SLEEPING) {
			v->thread->waking_stack = v->steps[0].waking_stack;
			step_remove(v, 0);
			host_wake(v->thread, by);
			engine_at(v->engine, v->engine->now, emit_later, v, 0);
		} else {
			step_remove(v, i);
		}
		return;
	}
}
