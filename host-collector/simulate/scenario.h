/* SPDX-License-Identifier: GPL-2.0-only */
/* The scenarios that can be simulated. Each is one row in scenario.c. */
#ifndef SIMULATE_SCENARIO_H
#define SIMULATE_SCENARIO_H

#include "host-collector/simulate/faults.h"

enum { SCENARIO_FAULTS_MAX = 6 };
enum scenario_kind {
	SCENARIO_SINGLE,
	SCENARIO_MIXTURE,
	SCENARIO_DECOY,
	SCENARIO_DOUBLE, /* further mixtures of two causes */
	SCENARIO_TRIPLE, /* mixtures of three causes */
	SCENARIO_NEAR,   /* just below and just above the threshold */
	SCENARIO_LONG,   /* 9 to 30 s */
	SCENARIO_LIFE,   /* the agent starts and ends, the guest reboots, a CPU goes offline */
	SCENARIO_LIE     /* the guest sends false times */
};

struct scenario_fault {
	enum fault_kind kind;
	uint16_t low_ms, high_ms; /* range of its length */
	/* Number of repetitions and their distance. With again 0, every_ms is the time from the
	 * begin of this fault to the begin of the next. */
	uint16_t again, every_ms;
};

struct scenario {
	const char *name, *about;
	enum scenario_kind kind;
	enum world_load load;
	/* Each begins when the one before it ends. If the list contains an agent that attaches,
	 * no agent runs at the beginning. */
	struct scenario_fault faults[SCENARIO_FAULTS_MAX];
};

extern const struct scenario scenarios[];
extern const size_t scenarios_count;

/* Returns a scenario by name, NULL if there is none. */
const struct scenario *scenario_find(const char *name);
const char *scenario_kind_name(enum scenario_kind kind);
/* Returns whether only KVM's events show what happens in it. */
bool scenario_needs_kvm(const struct scenario *s);
/* Returns whether the recording contains interrupt events. Decoys do, too, except under a steady
 * load, because more events can mislead an analysis. */
bool scenario_shows_interrupts(const struct scenario *s);
/* Returns whether the VM needs a second vCPU for it: one that holds what this one waits for, that
 * runs the agent, or that goes offline. */
bool scenario_needs_second(const struct scenario *s);
/* Returns whether the agent is absent at the beginning. */
bool scenario_agent_late(const struct scenario *s);
/* Returns whether some of its runs contain the hypervisor's parameters of the guest's clock. */
bool scenario_shows_clock(const struct scenario *s);
/* Plans the faults of `s` in the first VM. Returns the time at which the run ends. */
int64_t scenario_plan(const struct scenario *s, struct world *w);

#endif
