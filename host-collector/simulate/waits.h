/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulates waits of a guest CPU that runs but makes no progress. It waits for the owner of a lock,
 * for another CPU that it called, for a device, or for a nested guest. Each function begins such a
 * wait on the target vCPU and returns false if that is not possible now. `ns` is the length of the
 * wait.
 */
#ifndef SIMULATE_WAITS_H
#define SIMULATE_WAITS_H

#include "host-collector/simulate/vm.h"

/* The other vCPU holds a lock and loses its pCPU. */
bool wait_for_owner(struct sim_vm *vm, int64_t ns);
/* The same, with a paravirtual lock: this vCPU halts after a short spin and is kicked. */
bool wait_paravirtual(struct sim_vm *vm, int64_t ns);
/* The other vCPU holds the lock and keeps running. */
bool wait_contended(struct sim_vm *vm, int64_t ns);
/* The other vCPU has lost its pCPU; then this one calls it with an IPI. */
bool wait_for_call(struct sim_vm *vm, int64_t ns);
/* A device's status register shows busy. */
bool wait_polling(struct sim_vm *vm, int64_t ns);
/* A nested guest does not exit. */
bool wait_nested(struct sim_vm *vm, int64_t ns);
/* Spins with interrupts off, while the other vCPU has lost its pCPU for part of that time. */
bool wait_beside_steal(struct sim_vm *vm, int64_t ns);
/* The guest runs a nested guest that exits all the time. */
bool nested_life(struct sim_vm *vm, int64_t ns);

#endif
