/* SPDX-License-Identifier: GPL-2.0-only */
/* Evaluates the filter of a chosen event on a record of perf, and reads the values of the hit, as
 * the BPF programs do (bpf/prog/user_hit.h). */
#ifndef PERF_PERF_HIT_H
#define PERF_PERF_HIT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/capture/capture_event.h"
#include "bpf/perf/perf_sample.h"

/* Returns whether a record of perf suffices to compute the values and the filter of the event. A
 * record holds neither memory of the process, nor a stack, nor the name of the task. The name is
 * not needed if the kernel's filter is exact. */
bool perf_hit_can(const struct capture_event *e);
/* Returns a value of the hit that `record` reports on `cpu`. A value that the record does not hold
 * is 0. */
uint64_t perf_hit_value(const struct perf_record *record, uint16_t cpu,
			const struct vs_user_value *v);
/* Returns whether the filter keeps the hit. */
bool perf_hit_is_wanted(const struct perf_record *record, uint16_t cpu,
			const struct capture_event *e);

#endif
