/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts how long tasks waited, by what they waited for: the tasks of guests, as their kernels
 * report it, and the threads of the host that work for a VM (its VMM's threads, vCPU threads among
 * them, and vhost workers).
 */
#ifndef TABLES_TASK_WAITS_H
#define TABLES_TASK_WAITS_H

#include "host-collector/tables/analysis.h"

extern const struct analysis task_waits_analysis;

#endif
