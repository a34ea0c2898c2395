/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happens to a guest and its agent besides stalls: the agent comes late, starts again or is
 * gone, the guest reboots, takes a CPU offline, or says what is not true of its clock.
 */
#ifndef SIMULATE_LIFE_H
#define SIMULATE_LIFE_H

#include "host-collector/simulate/world.h"

/* The agent has not attached yet. */
void life_agent_absent(struct world *w);
/* The agent attaches while events flow, or says what it saw to the end and is gone. */
void life_agent_start(struct world *w);
void life_agent_stop(struct world *w);
/* Like life_agent_start(), but up to `until` entries of handlers are seen and no exits. */
void life_agent_start_torn(struct world *w, int64_t until);
/* The guest's kernel starts anew: its TSC at 0, without an agent. */
void life_reboot(struct world *w);
/* A CPU on which the agent does not run is taken offline. False: not now. */
bool life_cpu_offline(struct world *w);
void life_cpu_online(struct world *w);
/* From now on the guest's replies to round trips, or the stamps of its events, are off by `ns`. */
void life_echo_lie(struct world *w, int64_t ns);
void life_stamp_lie(struct world *w, int64_t ns);

#endif
