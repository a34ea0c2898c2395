/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's kernel on one vCPU: a current task, a run queue, ticks while it is busy, interrupts
 * and softirqs that nest. It moves only while its vCPU is in guest mode; interrupts that come
 * meanwhile stay pending, as do those that come while they are off.
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
	GUEST_CALL = 16 /* another CPU has this one run a function */
};
enum guest_task_state { TASK_SLEEPING, TASK_READY, TASK_CURRENT };

struct sim_vcpu;
struct guest_cpu_sim;

struct guest_task {
	struct guest_cpu_sim *cpu;
	int32_t pid;
	char comm[16];
	bool eager; /* a waking one preempts those that are not */
	bool due, announced;
	enum guest_task_state state;
	int64_t run_ns[2], sleep_ns[2]; /* works, then sleeps; run 0: for ever; sleep 0: until
					 * woken */
	int64_t left, slice_used;
	double device_share; /* how often its work ends with a word to a device */
	struct guest_task *wakes;
	void (*done)(void *context); /* its work is done, before it sleeps */
	void *context;
	uint64_t generation;
};

enum guest_frame_kind { FRAME_OF_IRQ, FRAME_OF_SOFTIRQ, FRAME_OF_VECTOR, FRAME_OF_SECTION };

/* What runs on top of the current task. A section is task code with something switched off. */
struct guest_frame {
	enum guest_frame_kind kind;
	uint32_t number;
	int64_t left, begun;
	bool irqs_off, preempt_off;
	enum sim_cause cause;
	int32_t culprit;           /* of the cause, if it is a thread of the host's */
	enum guest_vector pending; /* what brought it */
	/* It leaves the guest whenever it has run for until_exit, which this sets anew. */
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
	bool offline; /* the guest's kernel has taken it offline */
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
	void (*called)(void *context); /* the next call has been answered */
	void *called_context;
	struct guest_cpu_sim *calls[SIM_CPUS_MAX]; /* whom it is about to call */
	size_t n_calls;
};

/* All pointers are borrowed for the run. */
void guest_sim_init(struct guest_cpu_sim *g, struct engine *e, const struct sim_pace *pace,
		    struct sim_capture *c, struct truth *t, struct sim_vcpu *v, uint16_t cpu);
/* A sleeping task that becomes due within sleep_high (0: when woken). NULL: too many. */
struct guest_task *guest_task_new(struct guest_cpu_sim *g, int32_t pid, const char *comm,
				  int64_t run_low, int64_t run_high, int64_t sleep_low,
				  int64_t sleep_high);
void guest_sim_enter(struct guest_cpu_sim *g);
void guest_sim_leave(struct guest_cpu_sim *g);
void guest_sim_interrupt(struct guest_cpu_sim *g, enum guest_vector vector);
/* An interrupt has come that needs no exit. */
void guest_sim_poke(struct guest_cpu_sim *g);
/* The CPU, whose vCPU is in guest mode, goes offline: `stopper` runs last. */
void guest_sim_offline(struct guest_cpu_sim *g, struct guest_task *stopper);
void guest_sim_online(struct guest_cpu_sim *g);
/* Are its interrupts on? */
bool guest_sim_takes(const struct guest_cpu_sim *g);
/* A task becomes due: the next interrupt wakes it. */
void guest_task_due(struct guest_task *t, enum guest_vector vector);
/* The current task, or an interrupt, goes on for frame->left of the guest's time. The vCPU is in
 * guest mode. */
void guest_sim_push(struct guest_cpu_sim *g, const struct guest_frame *frame);
/* What the section under way waits for has come. */
void guest_sim_release(struct guest_cpu_sim *g);
void guest_sim_storm(struct guest_cpu_sim *g, const struct guest_storm *storm);
/* The guest's own part in what is denied, while its vCPU runs. */
enum sim_cause guest_sim_cause(const struct guest_cpu_sim *g, int32_t *culprit);

#endif
