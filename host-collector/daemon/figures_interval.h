/* SPDX-License-Identifier: GPL-2.0-only */
/* The interval of a VM's figures: the counters at its begin, and the line about it at its end. */
#ifndef DAEMON_FIGURES_INTERVAL_H
#define DAEMON_FIGURES_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-collector/daemon/watched_vm.h"
#include "host-collector/engine/live.h"
#include "host-collector/fleet/figures_record.h"

/* Initially zero. */
struct figures_interval {
	struct figures_counters before; /* if has_before: at its begin */
	bool has_before;
	uint64_t begin_ms; /* CLOCK_MONOTONIC */
	int64_t begin_realtime_ns, begin_ns;
};

/* The VM to which the figures belong, and its host; all are borrowed. */
struct figures_of {
	const struct host_facts *host;
	const struct vm_facts *facts;
	const struct watched_vm *vm;
	const struct live *live;
	const struct metrics *metrics;
};

/* Begins the interval now. */
void figures_interval_begin(struct figures_interval *i);
/* Frees the counters. */
void figures_interval_fini(struct figures_interval *i);
/* Writes the line about the interval up to now, and begins the next one. Returns the line's length;
 * 0: there is no memory or no room, and no line. */
size_t figures_interval_line(struct figures_interval *i, const struct figures_of *of, char *line,
			     size_t bytes);

#endif
