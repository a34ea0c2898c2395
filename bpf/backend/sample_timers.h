/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Timers that let a BPF program look at every CPU so often per second, while it is not idle. They
 * are perf's own (cpu-clock), because a VM seldom has a PMU. CPUs that come online later have none.
 */
#ifndef BACKEND_SAMPLE_TIMERS_H
#define BACKEND_SAMPLE_TIMERS_H

#include <bpf/libbpf.h>
#include <stdint.h>

#include "bpf/prog/ring.h"

struct sample_timers {
	struct bpf_link *links[VS_CPUS_MAX]; /* each with a timer */
};

/* Before load: the object's program of this name and its sample_period_ns. hz 0: leaves the program
 * out. 0 or -errno. */
int sample_timers_prepare(struct bpf_object *object, const char *program, uint32_t hz);
/* After load. 0 or -errno with one line in `why`. */
int sample_timers_attach(struct sample_timers *t, struct bpf_object *object, const char *program,
			 uint32_t hz, char *why, size_t why_bytes);
void sample_timers_detach(struct sample_timers *t);

#endif
