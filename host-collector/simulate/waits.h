/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest CPU that runs and yet gets nowhere, because what it waits for is somebody else's turn: a
 * lock's owner, a CPU that it has called, a device, a guest of its own. Each begins on the target
 * vCPU, false if not now; `ns` is how long the other side leaves it waiting.
 */
#ifndef SIMULATE_WAITS_H
#define SIMULATE_WAITS_H

#include "host-collector/simulate/world.h"

/* The other vCPU has a lock and loses its pCPU. */
bool wait_for_owner(struct world *w, int64_t ns);
/* The same; this one halts after a short spin and is kicked. */
bool wait_paravirtual(struct world *w, int64_t ns);
/* The other vCPU has the lock and keeps it, running. */
bool wait_contended(struct world *w, int64_t ns);
/* The other vCPU has lost its pCPU; now it is called. */
bool wait_for_call(struct world *w, int64_t ns);
/* A device's status says busy. */
bool wait_polling(struct world *w, int64_t ns);
/* The guest's own guest does not come back. */
bool wait_nested(struct world *w, int64_t ns);
/* Spins for nothing, while the other vCPU has lost its pCPU for a time of its own. */
bool wait_beside_steal(struct world *w, int64_t ns);
/* The guest runs a guest of its own that comes back all the time. */
bool nested_life(struct world *w, int64_t ns);

#endif
