/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A busy VM of two vCPUs, each on a pCPU of its own: tasks that hand over to each other, exits of
 * every common kind, interrupts by MSI, IPI and timer with their softirqs, halts, a task of the
 * host that takes the pCPU away. Six events in ten are the host's. Nothing is real but the order.
 */
#ifndef BENCH_BUSY_SCENE_H
#define BENCH_BUSY_SCENE_H

#include <stddef.h>

#include "host-collector/timeline/timeline.h"
#include "tests/unit/synth.h"

enum { BUSY_VCPUS = 2 };

/* `n` events in time order, t from 0 on, sources VS_SOURCE_HOST and SYNTH_VM; event.time is not
 * set. free() it; NULL on ENOMEM. */
struct timeline_event *busy_scene_new(size_t n);

#endif
