/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generates the events of a busy VM with two vCPUs, each on its own pCPU. The guest's tasks wake
 * each other. There are exits of every common kind, interrupts by MSI, IPI and timer with their
 * softirqs, and halts. A task of the host preempts the vCPU threads. Six in ten events are the
 * host's. The events come in an order in which real ones could come; their values are made up.
 */
#ifndef BENCH_BUSY_SCENE_H
#define BENCH_BUSY_SCENE_H

#include <stddef.h>

#include "host-collector/timeline/timeline.h"
#include "tests/unit/synth.h"

enum { BUSY_VCPUS = 2 };

/* Returns `n` events in the order of time, of the sources VS_SOURCE_HOST and SYNTH_VM. `t` begins
 * at 0; event.time is not set. The caller frees the array. Returns NULL on ENOMEM. */
struct timeline_event *busy_scene_new(size_t n);

#endif
