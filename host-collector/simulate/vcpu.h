/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulates KVM and QEMU for one vCPU thread: it enters the guest, leaves it with an exit, and
 * executes a list of steps (in KVM, in QEMU, asleep) before it enters again.
 */
#ifndef SIMULATE_VCPU_H
#define SIMULATE_VCPU_H

#include "host-collector/simulate/apic.h"
#include "host-collector/simulate/guest.h"
#include "host-collector/simulate/host.h"
#include "host-collector/simulate/truth.h"

enum { VCPU_STEPS_MAX = 16 };
enum sim_step_kind { STEP_KVM, STEP_VMM, STEP_SLEEP };

struct sim_step {
	enum sim_step_kind kind;
	int64_t ns;           /* length; -1 for a sleep: until woken */
	enum sim_state state; /* state during a sleep */
	enum sim_cause cause;
	uint32_t task_state; /* task state during a sleep, enum vs_task_state */
	const struct sim_stack *stack, *waking_stack;
	struct host_thread *waker; /* NULL: an interrupt */
	bool halts, stops; /* halts: any interrupt ends the sleep; stops: only vcpu_sim_continue()
			      ends it */
};

enum sim_mode { MODE_IN_KVM, MODE_IN_VMM, MODE_IN_GUEST };

/* Exit reasons of VMX that this guest causes. */
enum sim_exit {
	EXIT_EXTERNAL = 1,
	EXIT_WINDOW = 7, /* interrupt window: interrupts are on again and one is pending */
	EXIT_HLT = 12,
	EXIT_HYPERCALL = 18,
	EXIT_RESUME = 24, /* VMRESUME of a nested guest */
	EXIT_IO = 30,
	EXIT_PAUSE = 40,
	EXIT_MMIO = 48,
	EXIT_TIMER = 52,
	EXIT_APIC_WRITE = 56
};

struct sim_vcpu {
	uint32_t index;
	struct engine *engine;
	struct truth *truth;
	struct host_thread *thread;
	struct guest_cpu_sim *guest;
	bool kvm_events;
	enum sim_mode mode;
	struct sim_step steps[VCPU_STEPS_MAX]; /* the first one is being executed */
	size_t n_steps;
	int64_t step_since;
	bool step_begun;
	uint64_t generation;
	struct sim_apic apic;
};

/* Initializes a vCPU. All pointers are borrowed for the run. kvm_events: the recording contains
 * KVM's events. */
void vcpu_sim_init(struct sim_vcpu *v, struct host_thread *thread, struct guest_cpu_sim *guest,
		   struct truth *truth, bool kvm_events);
/* Leaves the guest, executes `steps` and enters again. The vCPU is in guest mode. */
void vcpu_sim_exit(struct sim_vcpu *v, enum sim_exit reason, const struct sim_step *steps,
		   size_t n);
/* Captures an event of KVM on the vCPU thread and sets its `pid`; does nothing in a run without
 * KVM's events. */
void vcpu_sim_event(struct sim_vcpu *v, struct vs_event e);
/* Halts the vCPU, because the guest has nothing to run. */
void vcpu_sim_halt(struct sim_vcpu *v);
/* Tells the vCPU that an interrupt for the guest is pending. waker NULL: the host's own timer. */
void vcpu_sim_kick(struct sim_vcpu *v, struct host_thread *waker);
/* Makes the thread sleep in `step` as soon as possible, until vcpu_sim_continue(). */
void vcpu_sim_stop(struct sim_vcpu *v, const struct sim_step *step, struct host_thread *by);
void vcpu_sim_continue(struct sim_vcpu *v, struct host_thread *by);
/* Records the current state and cause of the vCPU in the truth. */
void vcpu_sim_emit(struct sim_vcpu *v);
bool vcpu_sim_in_guest(const struct sim_vcpu *v);

#endif
