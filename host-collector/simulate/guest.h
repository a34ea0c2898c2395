/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulates the guest's kernel on one vCPU: a current task, a run queue, ticks while it is busy,
 * and nested interrupts and softirqs. Its time advances only while the vCPU is in guest mode.
 * Interrupts that come at other times, or while interrupts are off, stay pending.
 */
#ifndef SIMULATE_GUEST_H
#define SIMULATE_GUEST_H

#include "host-collector/simulate/capture.h"
#include "host-collector/simulate/pace.h"
#include "host-collector/simulate/truth.h"

enum { GUEST_TASKS_MAX = 16, GUEST_FRAMES_MAX = 8 };
enum guest_vector {
	GUEST_TIMER = 1,
	GUEST_RESCHEDULE = 2,
	GUEST_DEVICE = 4,
	GUEST_STORM = 8,
	GUEST_CALL = 16 /* function call IPI of another CPU */
};
enum guest_task_state { TASK_SLEEPING, TASK_READY, TASK_CURRENT };

struct sim_vcpu;
struct guest_cpu_sim;

struct guest_task {
	struct guest_cpu_sim *cpu;
	int32_t pid;
	char comm[16];
	bool eager; /* preempts tasks that are not eager when it wakes */
	bool due, announced;
	enum guest_task_state state;
	int64_t run_ns[2], sleep_ns[2]; /* lengths of work and sleep, drawn from [0]..[1]; run 0:
					   for ever; sleep 0: until woken */
	int64_t left, slice_used;
	double device_share; /* probability that its work ends with a write to a device */
	struct guest_task *wakes;
	void (*done)(void *context); /* called when its work is done, before it sleeps */
	void *context;
	uint64_t generation;
};

enum guest_frame_kind { FRAME_OF_IRQ, FRAME_OF_SOFTIRQ, FRAME_OF_VECTOR, FRAME_OF_SECTION };

/* What runs on top of the current task. A section is task code with interrupts or preemption
 * off. */
struct guest_frame {
	enum guest_frame_kind kind;
	uint32_t number;
	int64_t left, begun;
	bool irqs_off, preempt_off;
	enum sim_cause cause;
	int32_t culprit;           /* culprit of the cause, if it is a host thread */
	enum guest_vector pending; /* the interrupt that caused it */
	/* Called each time it has run for until_exit: makes the vCPU exit and sets until_exit
	 * again. */
	void (*exits)(struct guest_cpu_sim *g, struct guest_frame *f);
	int64_t until_exit, exit_gap;
	void (*done)(void *context);
	void *context;
};

struct guest_storm {
	int64_t until, handler_ns[2], gap_ns[2];
};

struct guest_cpu_sim {
	struct engine *engine;
	const struct sim_pace *pace;
	struct sim_capture *capture;
	struct truth *truth;
	struct sim_vcpu *vcpu;
	uint16_t cpu;
	bool in_guest, need_resched;
	bool offline; /* the guest's kernel took the CPU offline */
	int64_t since;
	uint64_t generation;
	unsigned pending;
	struct guest_frame frames[GUEST_FRAMES_MAX];
	size_t n_frames;
	struct guest_task *current; /* NULL: idle */
	struct guest_task *ready[GUEST_TASKS_MAX];
	size_t n_ready, n_tasks;
	struct guest_task tasks[GUEST_TASKS_MAX];
	struct guest_storm storm;
	void (*called)(void *context); /* called when the next function call IPI was answered */
	void *called_context;
	/* Guest CPUs to which it is about to send an IPI. */
	struct guest_cpu_sim *calls[SIM_CPUS_MAX];
	size_t n_calls;
};

/* Initializes a guest CPU. All pointers are borrowed for the run. */
void guest_sim_init(struct guest_cpu_sim *g, struct engine *e, const struct sim_pace *pace,
		    struct sim_capture *c, struct truth *t, struct sim_vcpu *v, uint16_t cpu);
/* Adds a sleeping task that becomes due within sleep_high (0: when woken). Returns NULL if there
 * are too many. */
struct guest_task *guest_task_new(struct guest_cpu_sim *g, int32_t pid, const char *comm,
				  int64_t run_low, int64_t run_high, int64_t sleep_low,
				  int64_t sleep_high);
void guest_sim_enter(struct guest_cpu_sim *g);
void guest_sim_leave(struct guest_cpu_sim *g);
void guest_sim_interrupt(struct guest_cpu_sim *g, enum guest_vector vector);
/* Tells the guest that an interrupt was delivered that needs no exit. */
void guest_sim_poke(struct guest_cpu_sim *g);
/* Takes the CPU offline. Its vCPU is in guest mode; `stopper` runs last. */
void guest_sim_offline(struct guest_cpu_sim *g, struct guest_task *stopper);
void guest_sim_online(struct guest_cpu_sim *g);
/* Returns whether the CPU can take an interrupt now. */
bool guest_sim_takes(const struct guest_cpu_sim *g);
/* Makes a task due: the next interrupt wakes it. */
void guest_task_due(struct guest_task *t, enum guest_vector vector);
/* Runs `frame` on top of the current task or interrupt for frame->left of the guest's time. The
 * vCPU is in guest mode. */
void guest_sim_push(struct guest_cpu_sim *g, const struct guest_frame *frame);
/* Ends the wait of the section that runs. */
void guest_sim_release(struct guest_cpu_sim *g);
void guest_sim_storm(struct guest_cpu_sim *g, const struct guest_storm *storm);
/* Returns the cause that the guest itself has for denying time while its vCPU runs. */
enum sim_cause guest_sim_cause(const struct guest_cpu_sim *g, int32_t *culprit);

#endif
