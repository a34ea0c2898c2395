/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KVM and QEMU as one vCPU thread sees them: it enters the guest, leaves it by exits, and works off
 * a plan of steps (in KVM, in QEMU, asleep) before it enters again.
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
	int64_t ns;           /* how long; a sleep of -1: until woken */
	enum sim_state state; /* a sleep: what it is */
	enum sim_cause cause;
	uint32_t task_state; /* a sleep: enum vs_task_state */
	const struct sim_stack *stack, *waking_stack;
	struct host_thread *waker; /* NULL: an interrupt */
	bool halts, stops;         /* ended by any interrupt; by vcpu_continue only */
};

enum sim_mode { MODE_IN_KVM, MODE_IN_VMM, MODE_IN_GUEST };

/* Exit reasons of VMX, as far as this guest brings them about. */
enum sim_exit {
	EXIT_EXTERNAL = 1,
	EXIT_WINDOW = 7, /* interrupts are on again, and one waits */
	EXIT_HLT = 12,
	EXIT_HYPERCALL = 18,
	EXIT_RESUME = 24, /* of a guest of its own */
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
	struct sim_step steps[VCPU_STEPS_MAX]; /* the first is under way */
	size_t n_steps;
	int64_t step_since;
	bool step_begun;
	uint64_t generation;
	struct sim_apic apic;
};

/* All pointers are borrowed for the run. kvm_events: does the recording show KVM's? */
void vcpu_sim_init(struct sim_vcpu *v, struct host_thread *thread, struct guest_cpu_sim *guest,
		   struct truth *truth, bool kvm_events);
/* In guest mode: leaves the guest, works off `steps`, enters again. */
void vcpu_sim_exit(struct sim_vcpu *v, enum sim_exit reason, const struct sim_step *steps,
		   size_t n);
/* Of KVM's, on the vCPU's thread; nothing in a run without KVM's events. */
void vcpu_sim_event(struct sim_vcpu *v, uint16_t type, uint64_t arg0, uint64_t arg1);
/* The guest has nothing to run. */
void vcpu_sim_halt(struct sim_vcpu *v);
/* An interrupt for the guest is pending. waker NULL: the host's own timer. */
void vcpu_sim_kick(struct sim_vcpu *v, struct host_thread *waker);
/* The thread sleeps in `step` as soon as it can be made to, until vcpu_sim_continue. */
void vcpu_sim_stop(struct sim_vcpu *v, const struct sim_step *step, struct host_thread *by);
void vcpu_sim_continue(struct sim_vcpu *v, struct host_thread *by);
/* What the guest does changes its share in the blame. */
void vcpu_sim_tell(struct sim_vcpu *v);
bool vcpu_sim_in_guest(const struct sim_vcpu *v);

#endif
