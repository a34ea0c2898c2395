/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulates what happens to a guest and its agent besides stalls: the agent attaches late, restarts
 * or ends, the guest reboots, takes a CPU offline, or sends false times.
 */
#ifndef SIMULATE_LIFE_H
#define SIMULATE_LIFE_H

#include "host-collector/simulate/vm.h"

/* The agent introduces itself. */
void life_agent_hello(struct sim_vm *vm);
/* The agent is not attached, and nothing is captured. */
void life_agent_absent(struct sim_vm *vm);
/* Attaches the agent while events occur. Ends it; in half of the cases it sends its events
 * first. */
void life_agent_start(struct sim_vm *vm);
void life_agent_stop(struct sim_vm *vm);
/* Like life_agent_start(), but until `until` only entries of handlers are captured, not exits. */
void life_agent_start_torn(struct sim_vm *vm, int64_t until);
/* Restarts the guest's kernel: its TSC is 0, and no agent runs. */
void life_reboot(struct sim_vm *vm);
/* Takes a CPU offline on which the agent does not run. Returns false if that is not possible
 * now. */
bool life_cpu_offline(struct sim_vm *vm);
void life_cpu_online(struct sim_vm *vm);
/* From now on, the times in the guest's replies to round trips, or the stamps of its events, are
 * wrong by `ns`. */
void life_echo_lie(struct sim_vm *vm, int64_t ns);
void life_stamp_lie(struct sim_vm *vm, int64_t ns);

#endif
