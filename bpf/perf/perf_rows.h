/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a host's capture by perf opens once there are threads to follow, in rings of its own: who
 * wakes and moves them, and with the first vCPU the tracepoints of tracepoint_sources() and major
 * page faults.
 *
 * The kernel filters by thread where only followed threads' hits matter, because these are many and
 * others' are no business of ours. A filter cannot be changed once it is set, so it lets through
 * the threads that the process has by then and every thread that is younger: what is too much is
 * left out by the replay. A thread that this misses, because the VM is older than the one followed
 * first or thread ids began anew, is covered by a further set of events. A hit that two sets see
 * counts for the first.
 */
#ifndef PERF_PERF_ROWS_H
#define PERF_PERF_ROWS_H

#include <sys/types.h>

#include "bpf/perf/capture_perf.h"

struct perf_rows;

/* What a ring holds until it is replayed. */
struct perf_input {
	struct perf_ring *ring; /* NULL: the CPU is offline */
	struct perf_queue queue;
	uint16_t cpu;
};

struct perf_rows *perf_rows_new(struct capture_perf *c); /* NULL on ENOMEM */
void perf_rows_free(struct perf_rows *r);
/* Before a thread is followed: opens what it takes. */
void perf_rows_cover(struct perf_rows *r, pid_t tid, pid_t tgid, bool is_vcpu);
void perf_rows_cpu_open(struct perf_rows *r, size_t cpu);
void perf_rows_cpu_close(struct perf_rows *r, size_t cpu);
/* Empties the rings into their queues. */
void perf_rows_read(struct perf_rows *r);
/* Adds the queues to `out`, which has room for perf_rows_n_inputs(). */
size_t perf_rows_n_inputs(const struct perf_rows *r);
size_t perf_rows_inputs(struct perf_rows *r, struct perf_input **out);
/* Tracepoints that are captured now. */
size_t perf_rows_n_tracepoints(const struct perf_rows *r);

#endif
