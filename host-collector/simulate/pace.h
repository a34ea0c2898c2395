/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Defines how long the parts of a simulated run take. Each row is a stage that can be made slower,
 * so that it is known which stage a comparison of two runs must report.
 */
#ifndef SIMULATE_PACE_H
#define SIMULATE_PACE_H

#include "host-collector/simulate/engine.h"

/* X(NAME, "name", what takes the time) */
#define PACE_STAGES(X)                                                                             \
	X(EXIT_KVM, "exit_kvm", "KVM's part of a VM-exit")                                         \
	X(EXIT_VMM, "exit_vmm", "QEMU's part of a VM-exit")                                        \
	X(HOST_WAKE, "host_wake", "from a wake-up until the host switches to the thread")          \
	X(HOST_TASK, "host_task", "work of other tasks on a vCPU's pCPU")                          \
	X(HANDLER, "handler", "a guest's interrupt handler")                                       \
	X(SOFTIRQ, "softirq", "a guest's softirq")

enum pace_stage {
#define X(NAME, ...) PACE_##NAME,
	PACE_STAGES(X)
#undef X
		PACE_STAGE_COUNT
};

/* All zero: stages take the times that their users pass. */
struct sim_pace {
	bool tails; /* times have long tails instead of being uniform */
	/* Relative increase and relative jitter of each stage. */
	double more[PACE_STAGE_COUNT], jitter[PACE_STAGE_COUNT];
};

/* Turns tails on and draws a jitter of up to +-`share` for each stage, for the whole run, so
 * that no two runs of the same software are equal. */
void pace_vary(struct sim_pace *p, struct engine *e, double share);
/* Draws a time, uniform in [low, high], or with an exponential tail and the same mean; then
 * scales it by the stage's increase and jitter. Returns ns. */
int64_t pace_draw(const struct sim_pace *p, struct engine *e, enum pace_stage stage, int64_t low,
		  int64_t high);
/* Parses "exit_kvm=10%", which makes that stage 10 % longer ("-10%": shorter). Returns 0 or
 * -EINVAL. */
int pace_shift(struct sim_pace *p, const char *text);
const char *pace_stage_name(enum pace_stage stage);
const char *pace_stage_meaning(enum pace_stage stage);

#endif
