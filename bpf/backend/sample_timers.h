/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs a BPF program at a fixed rate on every CPU, also on an idle one. The timers are perf's
 * software timers (cpu-clock), because few VMs have a PMU. A CPU that comes online later has no
 * timer. */
#ifndef BACKEND_SAMPLE_TIMERS_H
#define BACKEND_SAMPLE_TIMERS_H

#include <bpf/libbpf.h>
#include <stdint.h>

#include "bpf/prog/ring.h"

struct sample_timers {
	struct bpf_link *links[VS_CPUS_MAX]; /* by CPU; each link owns a timer */
};

/* Call it before the object is loaded. Sets sample_period_ns of the object. If hz is 0, excludes
 * the program of this name from the load. Returns 0 or -errno. */
int sample_timers_prepare(struct bpf_object *object, const char *program, uint32_t hz);
/* Call it after the object was loaded. Starts the timers of all online CPUs. period_ns: above 0.
 * Returns 0, or -errno with one line in `why`. */
int sample_timers_attach(struct sample_timers *t, struct bpf_object *object, const char *program,
			 uint64_t period_ns, char *why, size_t why_bytes);
void sample_timers_detach(struct sample_timers *t);

#endif
