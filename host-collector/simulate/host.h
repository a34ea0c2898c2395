/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulates the host: pCPUs with run queues, and threads that run, sleep, wake and preempt each
 * other. Emits what a capture that follows the VM's threads sees: their switches and wake-ups, and
 * the tasks that run on a CPU for which one of them waits.
 */
#ifndef SIMULATE_HOST_H
#define SIMULATE_HOST_H

#include "host-collector/simulate/capture.h"
#include "host-collector/simulate/pace.h"
#include "host-collector/simulate/stacks.h"

enum { HOST_THREADS_MAX = 2048 };

enum host_urgency { HOST_FAIR, HOST_EAGER, HOST_REALTIME };
enum host_thread_state { HOST_SLEEPING, HOST_READY, HOST_RUNNING };

struct host_thread;

struct host_thread_ops {
	void (*leaves)(struct host_thread *t); /* called before the thread is switched out, while it
						  is current */
	void (*runs)(struct host_thread *t);   /* called after the thread was switched in */
};

struct host_thread {
	struct host *host;
	int32_t tid, tgid;
	char comm[16];
	uint16_t cpu;
	bool pinned, followed, is_vcpu, announced;
	bool throttled; /* ready, but its cgroup has no quota left */
	enum host_urgency urgency;
	enum host_thread_state state;
	struct host_thread *next; /* next in the run queue */
	const struct host_thread_ops *ops;
	void *owner;

	uint32_t off_state; /* state while it is off its CPU, and begin of that state */
	int64_t off_time;
	const struct sim_stack *off_stack,
		*waking_stack; /* stack where it sleeps; stack that wakes it */

	/* Ordinary threads work, then sleep; lengths are drawn from [0]..[1]. Sleep 0: until
	 * woken. */
	int64_t run_ns[2], sleep_ns[2], left, since;
	uint64_t generation;
	void (*done)(void *context); /* called when its work is done, before it sleeps */
	void *context;
};

struct pcpu {
	struct host *host;
	uint16_t cpu;
	struct host_thread *current, *queue;
	uint64_t switches;
	int64_t current_since;
	bool slice_planned;
	bool locked_up; /* its kernel does not switch tasks */
	unsigned followed_waiting;
};

struct host {
	struct engine *engine;
	const struct sim_pace *pace;
	struct sim_capture *capture;
	struct sim_stacks *stacks;
	uint16_t n_cpus;
	struct pcpu pcpus[SIM_CPUS_MAX];
	size_t n_threads;
	struct host_thread threads[HOST_THREADS_MAX];
};

/* Initializes the host. All pointers are borrowed for the run. */
void host_init(struct host *h, struct engine *e, const struct sim_pace *pace, struct sim_capture *c,
	       struct sim_stacks *s, uint16_t n_cpus);
/* Adds a sleeping thread. Returns NULL if there are too many. */
struct host_thread *host_thread_new(struct host *h, int32_t tid, int32_t tgid, const char *comm,
				    uint16_t cpu);
/* Makes the thread work, then sleep, in turn. Each length is drawn from its range anew. */
void host_thread_works(struct host_thread *t, int64_t run_low, int64_t run_high, int64_t sleep_low,
		       int64_t sleep_high);
/* Wakes a thread. waker NULL: an interrupt on the CPU on which the thread last ran. */
void host_wake(struct host_thread *t, struct host_thread *waker);
/* Puts the running thread to sleep. */
void host_sleep(struct host_thread *t, uint32_t state, const struct sim_stack *stack);
/* The cgroup of the thread has used up its quota, or got a new one. */
void host_throttle(struct host_thread *t, bool throttled);
void host_signal(struct host_thread *target, struct host_thread *sender, uint32_t number);
/* Captures an event on the thread's CPU. Returns false if it is lost. */
bool sim_host_event(struct host_thread *t, struct vs_event e);

#endif
