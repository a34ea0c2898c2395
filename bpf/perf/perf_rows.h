/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Opens and reads the rings that a host capture through perf needs when the first thread is
 * followed. They hold the wake-ups and migrations of followed threads and, from the first vCPU on,
 * the tracepoints of tracepoint_row() and major page faults.
 *
 * Where only the hits of followed threads matter, the kernel filters by thread, because there are
 * many hits. A filter is never changed: it passes the threads that the process had when it was set,
 * and every thread with a higher id. The replay (perf_follow.h) discards the rest. If a new
 * followed thread does not pass, a further set of events is opened. This happens if its VM is older
 * than the VM that was followed first, or if thread ids have wrapped around. If two sets report the
 * same hit, the report of the first set is used. The last set that can be opened has no filter.
 */
#ifndef PERF_PERF_ROWS_H
#define PERF_PERF_ROWS_H

#include <sys/types.h>

#include "bpf/perf/capture_perf.h"

struct perf_rows;

/* A ring and the queue of its records that have not been replayed. */
struct perf_input {
	struct perf_ring *ring; /* NULL: the CPU is offline, or the ring could not be opened */
	struct perf_queue queue;
	uint16_t cpu;
};

struct perf_rows *perf_rows_new(struct capture_perf *c); /* NULL on ENOMEM */
void perf_rows_free(struct perf_rows *r);
/* Opens the events that a new followed thread needs. Call it before perf_follow_add(). Events that
 * cannot be opened are not observed. */
void perf_rows_cover(struct perf_rows *r, pid_t tid, pid_t tgid, bool is_vcpu);
/* Open and close the rings of a CPU that comes online or goes offline. */
void perf_rows_cpu_open(struct perf_rows *r, size_t cpu);
void perf_rows_cpu_close(struct perf_rows *r, size_t cpu);
/* Reads all records of the rings into their queues. */
void perf_rows_read(struct perf_rows *r);
/* Fills `out`, which has room for perf_rows_n_inputs() pointers. The inputs are borrowed. Returns
 * the number. */
size_t perf_rows_n_inputs(const struct perf_rows *r);
size_t perf_rows_inputs(struct perf_rows *r, struct perf_input **out);
/* Returns the number of tracepoints of tracepoint_row() that are captured. */
size_t perf_rows_n_tracepoints(const struct perf_rows *r);

#endif
