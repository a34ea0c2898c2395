/* SPDX-License-Identifier: GPL-2.0-only */
/* Builds the lines of vcpuscope.figures/1 (docs/fleet.md). */
#ifndef FLEET_FIGURES_RECORD_H
#define FLEET_FIGURES_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "host-collector/fleet/host_facts.h"
#include "host-collector/fleet/vm_facts.h"
#include "host-collector/metrics/metrics.h"

struct json_object;

/* Counters of a VM at one time. All of them only grow. */
struct figures_counters {
	struct metrics_vm vm;
	uint64_t host_events, host_events_lost, guest_events, guest_events_lost;
};

struct figures_record {
	const struct host_facts *host;
	const struct vm_facts *vm;
	int64_t begin_ns; /* on the host's monotonic clock: part of the id */
	int64_t begin_realtime_ns, end_realtime_ns, interval_ns;
	bool summary;       /* the level of the host capture */
	bool has_agent, up; /* the VM has a channel; its agent was heard in the last second */
	const struct figures_counters *before, *now; /* before: NULL at the VM's begin */
};

/* Returns the record as an object that the caller owns, or NULL if there is no memory. */
struct json_object *figures_record_json(const struct figures_record *r);

#endif
