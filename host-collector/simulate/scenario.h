/* SPDX-License-Identifier: GPL-2.0-only */
/* The scenarios that can be simulated: one row each in scenario.c adds one. */
#ifndef SIMULATE_SCENARIO_H
#define SIMULATE_SCENARIO_H

#include "host-collector/simulate/faults.h"

enum { SCENARIO_FAULTS_MAX = 6 };
enum scenario_kind {
	SCENARIO_SINGLE,
	SCENARIO_MIXTURE,
	SCENARIO_DECOY,
	SCENARIO_DOUBLE, /* more mixtures of two causes */
	SCENARIO_TRIPLE, /* of three */
	SCENARIO_NEAR,   /* just below and just above the threshold */
	SCENARIO_LONG,   /* 9 to 30 s */
	SCENARIO_LIFE,   /* the agent comes and goes, the guest reboots, a CPU goes offline */
	SCENARIO_LIE     /* the guest says what is not true of its clock */
};

struct scenario_fault {
	enum fault_kind kind;
	uint16_t low_ms, high_ms; /* how long */
	/* So many times more, so far apart. Once only, but with every_ms: what follows begins so
	 * long after this began. */
	uint16_t again, every_ms;
};

struct scenario {
	const char *name, *about;
	enum scenario_kind kind;
	enum world_load load;
	/* Each begins when the one before it ends. An agent that attaches was not there before. */
	struct scenario_fault faults[SCENARIO_FAULTS_MAX];
};

extern const struct scenario scenarios[];
extern const size_t scenarios_count;

/* NULL if there is none of that name. */
const struct scenario *scenario_find(const char *name);
const char *scenario_kind_name(enum scenario_kind kind);
/* Do only KVM's events show what happens in it? */
bool scenario_needs_kvm(const struct scenario *s);
/* Decoys, too: with interrupts' events in a recording, more could be mistaken. */
bool scenario_shows_interrupts(const struct scenario *s);
/* Is the agent absent at the beginning? */
bool scenario_agent_late(const struct scenario *s);
/* Do some runs show the hypervisor's parameters of the guest's clock? */
bool scenario_shows_clock(const struct scenario *s);
/* Plans the faults of `s`; returns when the run is to end. */
int64_t scenario_plan(const struct scenario *s, struct world *w);

#endif
