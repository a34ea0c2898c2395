/* SPDX-License-Identifier: GPL-2.0-only */
/* What perf_event_open() is asked for to get the hits of an event that the user chose. */
#ifndef CAPTURE_EVENT_PMU_H
#define CAPTURE_EVENT_PMU_H

#include <stdint.h>

#include "bpf/capture/capture_event.h"

/* Fields of struct perf_event_attr. config1 points into the event. */
struct event_pmu {
	uint32_t type;
	uint64_t config, config1, config2;
};

/* Returns 0; -ENOENT: no such tracepoint; -ENOSYS: this kernel has no kprobes; -ENOTSUP: it has no
 * uprobes, or none with a counter; or another -errno. */
int event_pmu_find(const struct capture_event *event, struct event_pmu *out);

#endif
