/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records the truth of a simulated run: each state of its vCPUs and guest CPUs, and the cause for
 * which the simulation set it. The truth does not depend on clocks, losses or the rules of the
 * analysis. From these states it computes the incidents that a perfect report would show, with the
 * members of a report.
 */
#ifndef SIMULATE_TRUTH_H
#define SIMULATE_TRUTH_H

#include <stdio.h>

#include "host-collector/simulate/engine.h"

/* X(NAME, "name in the report") */
#define SIM_STATES(X)                                                                              \
	X(UNKNOWN, "unknown")                                                                      \
	X(GUEST, "guest")                                                                          \
	X(KVM, "kvm")                                                                              \
	X(VMM, "vmm")                                                                              \
	X(RUNNABLE, "runnable")                                                                    \
	X(HALTED, "halted")                                                                        \
	X(BLOCKED, "blocked")                                                                      \
	X(THROTTLED, "throttled")                                                                  \
	X(STOPPED, "stopped")

#define SIM_CAUSES(X)                                                                              \
	X(NONE, "none")                                                                            \
	X(PAUSED, "vm_paused")                                                                     \
	X(MIGRATION, "migration")                                                                  \
	X(NOT_SCHEDULED, "vcpu_not_scheduled")                                                     \
	X(QUOTA, "cgroup_throttled")                                                               \
	X(VMM_LOCK, "vmm_lock")                                                                    \
	X(STORAGE, "storage_backend")                                                              \
	X(PAGING, "demand_paging")                                                                 \
	X(MMU, "mmu_contention")                                                                   \
	X(MEMORY, "host_memory")                                                                   \
	X(SPLIT_LOCK, "split_lock")                                                                \
	X(SPIN, "guest_spin")                                                                      \
	X(STORM, "guest_irq_storm")                                                                \
	X(LOCK_OWNER, "lock_holder_preempted")                                                     \
	X(CALL, "ipi_target_preempted")                                                            \
	X(DEVICE, "device_no_completion")                                                          \
	X(NESTED, "nested_unobservable")                                                           \
	X(LOCKUP, "host_lockup")                                                                   \
	X(TIMER, "timer_late")                                                                     \
	X(LOST, "interrupt_lost")                                                                  \
	X(CLOCK, "clock_jump")

enum sim_state {
#define X(NAME, ...) SIM_STATE_##NAME,
	SIM_STATES(X)
#undef X
		SIM_STATE_COUNT
};

enum sim_cause {
#define X(NAME, ...) SIM_CAUSE_##NAME,
	SIM_CAUSES(X)
#undef X
		SIM_CAUSE_COUNT
};

enum { TRUTH_CPUS_MAX = 32 };

struct truth_phase {
	int64_t t;
	enum sim_state state;
	enum sim_cause cause;
	int32_t culprit; /* host thread, or guest task if the cause is in the guest; 0: none */
};

struct truth_period {
	int64_t t;
	int32_t pid;
	const char *comm;
};

struct truth_interrupt {
	int64_t begin, end;
	const char *kind;
	uint32_t number;
};

/* A lost interrupt: accepted at `begin`, its handler ran at `end`. */
struct truth_loss {
	int64_t begin, end;
	uint8_t vector;
};

/* An interrupt that the guest took. */
struct truth_taken {
	int64_t handler;
	int64_t lost_ns; /* time for which it was held back; 0: it was not held back */
	uint8_t vector;
	int64_t accepts[2]; /* first and last recorded accept; -1: none */
	bool handler_recorded;
};

struct truth_cpu {
	struct truth_phase *phases;
	size_t n_phases, phases_capacity;
	struct truth_period *periods;
	size_t n_periods, periods_capacity;
	struct truth_interrupt *interrupts; /* only long ones */
	size_t n_interrupts, interrupts_capacity;
	struct truth_loss *losses;
	size_t n_losses, losses_capacity;
	struct truth_taken *taken;
	size_t n_taken, taken_capacity;
};

/* Sources of interrupts, by which the handled ones are counted. */
#define TRUTH_SOURCES(X)                                                                           \
	X(MSI, "msi")                                                                              \
	X(GSI, "gsi")                                                                              \
	X(IPI, "ipi")                                                                              \
	X(TIMER, "timer")

enum truth_source {
#define X(NAME, ...) TRUTH_SOURCE_##NAME,
	TRUTH_SOURCES(X)
#undef X
		TRUTH_SOURCE_COUNT
};

enum { TRUTH_STEPS_MAX = 8 };

struct truth {
	struct engine *engine;
	uint32_t n_cpus;
	struct truth_cpu cpus[TRUTH_CPUS_MAX]; /* guest CPU n is vCPU n */
	int64_t handled[TRUTH_SOURCE_COUNT];
	int64_t reading; /* time of the last reading of the guest's clock */
	bool stepped;    /* the clock was stepped since that reading */
	size_t n_steps;
	struct truth_step { /* the readings before and after each step */
		int64_t begin, end;
	} steps[TRUTH_STEPS_MAX];
};

struct sim_jobs;

struct truth_header {
	const char *scenario, *about;
	uint64_t seed;
	uint64_t raw0;               /* CLOCK_MONOTONIC_RAW ns at the begin of the run */
	double loss;                 /* share of the events that are lost, 0 to 1 */
	bool kvm_events, interrupts; /* which events the recording contains */
	const struct sim_jobs *jobs; /* NULL: none */
};

/* The truth of one VM. */
struct truth_vm {
	const char *name;
	const struct truth *truth;
};

/* Initializes the truth. The engine is borrowed; it provides the time and keeps errors. */
void truth_init(struct truth *t, struct engine *e, uint32_t n_cpus);
void truth_fini(struct truth *t);
/* From now on, the CPU is in `state` because of `cause`. culprit: pid of the culprit, 0 none. */
void truth_phase(struct truth *t, uint32_t cpu, enum sim_state state, enum sim_cause cause,
		 int32_t culprit);
/* Call these when the guest's clock is stepped, and when the guest reads it. */
void truth_clock_step(struct truth *t);
void truth_clock_reading(struct truth *t);
void truth_switch(struct truth *t, uint32_t cpu, int32_t pid, const char *comm);
void truth_interrupt(struct truth *t, uint32_t cpu, int64_t begin, const char *kind,
		     uint32_t number);
/* The handler of `taken` begins now. Sets the time of the handler. */
void truth_handled(struct truth *t, uint32_t cpu, enum truth_source source,
		   struct truth_taken taken);
/* The handler of an interrupt that was lost since `begin` begins now. */
void truth_lost(struct truth *t, uint32_t cpu, int64_t begin, uint8_t vector);
/* Writes the incidents of all VMs as JSON. Incidents that are slightly shorter than the threshold
 * are in a list of their own, because a report may or may not show them. Returns 0 or -errno. */
int truth_write(const struct truth_vm *vms, size_t n, const struct truth_header *header, FILE *to);

#endif
